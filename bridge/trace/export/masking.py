"""The masking of what goes out: events as they are, or with every secret known by then replaced.

Owns: the redactor of one export. Used by `bridge.trace.export.source` (which learns of all secrets
first) and by `bridge.trace.live` (which learns as it reads).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bridge.trace import secrets
from bridge.trace.reader import Event
from bridge.trace.redact import Redactor
from bridge.wire import codec
from protocol_schemas.trace import Head


class Masking:
    """`on`: whether it masks at all; `more`: values to be masked besides what is learnt."""

    def __init__(self, *, on: bool, more: Iterable[str], environment: Mapping[str, str]) -> None:
        self.on = on
        self._redactor = Redactor(masking=on)
        for index, value in enumerate(more, 1):
            self._redactor.learn(f"given-{index}", value)
        for secret in secrets.of_environment(environment):
            self._redactor.learn(*secret)

    def learn(self, event: Event) -> None:
        """Takes the secrets that an event brings."""
        if not self.on:
            return
        content = event.content or b""
        found: Iterator[secrets.Secret] = iter(())
        if event.ch == "host" and event.dir == "in":
            found = secrets.of_host(content)
        elif event.ch in ("acp", "client", "conductor"):
            markers = (*secrets.CLIENT_MARKERS, *secrets.AGENT_MARKERS)
            if any(marker in content for marker in markers):
                found = secrets.of_acp(content)
        elif (event.ch, event.kind) == ("process", "start"):
            found = secrets.of_arguments(map(str, _list(event.data.get("argv"))))
        else:
            found = secrets.of_event(event.data)
        for secret in found:
            self._redactor.learn(*secret)

    def learn_head(self, head: Head) -> None:
        """Takes the secrets in the command that was recorded."""
        for secret in secrets.of_arguments(head.command):
            self._redactor.learn(*secret)

    def masked(self, event: Event) -> Event:
        """The event without secrets; changed in its place."""
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

    def head(self, head: Head) -> Head:
        """A recording's head without secrets."""
        return codec.decode_as(self._redactor.mask(codec.encode(head)), Head)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else []  # pyright: ignore[reportUnknownArgumentType]


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
