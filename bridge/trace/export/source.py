"""What is exported: a trace's entries, with every secret that is known from the trace masked.

Owns: the masking of recordings that kept their secrets, or that hold more than the recorder was
told. Rule: the whole trace is read for secrets first, then masked, so that none is seen before it
was learnt. Used by every export and by the page.
"""

from collections.abc import Iterable, Iterator

from bridge.trace import secrets
from bridge.trace.filter import compile_filter
from bridge.trace.reader import Damage, Event, Item, read
from bridge.trace.redact import Redactor
from bridge.trace.timeline import Entry, Timeline
from bridge.wire import codec
from protocol_schemas.trace import Head


class Source:
    """A trace to be exported."""

    def __init__(
        self, path: str, *, masking: bool, more: Iterable[str], environment: dict[str, str]
    ) -> None:
        """`more`: values to be masked besides. Raises UsageError."""
        self.masking = masking
        self._items = list(read(path))
        self._redactor = Redactor(masking=masking)
        for index, value in enumerate(more, 1):
            self._redactor.learn(f"given-{index}", value)
        if masking:
            for secret in secrets.of_environment(environment):
                self._redactor.learn(*secret)
            for item in self._items:
                if isinstance(item, Event):
                    self._learn(item)

    def _learn(self, event: Event) -> None:
        content = event.content or b""
        found: Iterator[secrets.Secret] = iter(())
        if event.ch == "host" and event.dir == "in":
            found = secrets.of_host(content)
        elif event.ch in ("acp", "client"):
            markers = (*secrets.CLIENT_MARKERS, *secrets.AGENT_MARKERS)
            if any(marker in content for marker in markers):
                found = secrets.of_acp(content)
        elif "headers" in event.data:
            found = secrets.of_event(codec.encode({"data": event.data}))
        for secret in found:
            self._redactor.learn(*secret)

    def items(self) -> Iterator[Item]:
        """The trace's items, masked."""
        for item in self._items:
            yield self._masked(item) if isinstance(item, Event) else self._head(item)

    def found(self) -> Iterator[Entry | Head | Damage]:
        """The entries, with heads and damage among them."""
        timeline = Timeline()
        for item in self.items():
            if isinstance(item, Event):
                yield timeline.add(item)
                continue
            if isinstance(item, Head):
                timeline.restart()
            yield item

    def entries(self, filter_text: str = "") -> list[Entry]:
        """The wanted entries. Raises UsageError."""
        wanted = compile_filter(filter_text)
        found = [item for item in self.found() if isinstance(item, Entry)]
        return [entry for entry in found if wanted(entry)]

    def head(self) -> Head | None:
        """The first recording's head."""
        return next((item for item in self.items() if isinstance(item, Head)), None)

    def _head(self, item: Head | Damage) -> Head | Damage:
        if isinstance(item, Damage):
            return item
        return codec.decode_as(self._redactor.mask(codec.encode(item)), Head)

    def _masked(self, event: Event) -> Event:
        if event.content is not None:
            masked = self._redactor.mask(event.content)
            if masked != event.content:
                event.content = masked
                event.is_json = event.is_json and _is_json(masked)
        if event.data:
            data = codec.encode(event.data)
            masked = self._redactor.mask(data)
            if masked != data:
                event.data = _data(masked)
        return event


def _is_json(data: bytes) -> bool:
    try:
        codec.decode(data)
    except codec.JSONError:
        return False
    return True


def _data(masked: bytes) -> dict[str, object]:
    try:
        return codec.mapping(codec.decode(masked)) or {}
    except codec.JSONError:
        return {"masked": masked.decode(errors="replace")}
