"""What is exported: a trace's entries, with every secret that is known from the trace masked.

Rule: the whole trace is read for secrets first, then masked, so that none is seen before it was
learnt. Used by every export and by the page.
"""

from collections.abc import Iterator

from bridge.trace.export.masking import Masking
from bridge.trace.filter import compile_filter
from bridge.trace.reader import Damage, Event, Item, read
from bridge.trace.timeline import Entry, Timeline
from protocol_schemas.trace import Head


class Source:
    """A trace to be exported. Making one raises UsageError."""

    def __init__(self, path: str, masking: Masking) -> None:
        self.masking = masking
        self._items = list(read(path))
        for item in self._items:
            if isinstance(item, Event):
                masking.learn(item)
            elif isinstance(item, Head):
                masking.learn_head(item)

    def items(self) -> Iterator[Item]:
        """The trace's items, masked."""
        for item in self._items:
            if isinstance(item, Event):
                yield self.masking.masked(item)
            else:
                yield self.masking.head(item) if isinstance(item, Head) else item

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

    def wanted(self, filter_text: str = "") -> list[Entry | Head]:
        """The wanted entries, and the heads of all recordings. Raises UsageError."""
        wanted = compile_filter(filter_text)
        found = [item for item in self.found() if not isinstance(item, Damage)]
        return [item for item in found if isinstance(item, Head) or wanted(item)]

    def entries(self, filter_text: str = "") -> list[Entry]:
        """The wanted entries. Raises UsageError."""
        return [item for item in self.wanted(filter_text) if isinstance(item, Entry)]

    def head(self) -> Head | None:
        """The first recording's head."""
        return next((item for item in self.items() if isinstance(item, Head)), None)
