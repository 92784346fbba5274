"""Rows of a view: entries as they are, but for runs of chunks, which are one row together.

Owns: the runs that are open. Rules: chunks that alternate with those of other streams (the agent's,
the host's events of them, the model's) still belong to their own run; anything else ends all runs,
so a row never stands after what came later than its last chunk. Sans-IO.
"""

from collections.abc import Iterable, Iterator

import msgspec

from bridge.trace.timeline import CHUNKS, Entry

_BODIES = ("request_body", "response_body")


class Row(msgspec.Struct, gc=False):
    """An entry, or the first of a run of `count`; `text` is the run's, `last` its last entry."""

    entry: Entry
    last: Entry
    count: int = 1
    size: int = 0
    parts: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self.parts)


class Runs:
    """Feed it the entries that are to be shown, in order."""

    def __init__(self) -> None:
        self._open: dict[tuple[object, ...], Row] = {}

    def add(self, entry: Entry) -> list[Row]:
        """The rows that are complete with it."""
        size = len(entry.event.content or b"")
        key = _key(entry)
        if key is None:
            return [*self.flush(), Row(entry, entry, 1, size)]
        row = self._open.get(key)
        if row is None:
            row = self._open[key] = Row(entry, entry, 0, 0, [])
        row.last = entry
        row.count += 1
        row.size += size
        if entry.text is not None:
            row.parts.append(entry.text)
        return []

    def run_of(self, entry: Entry) -> Entry | None:
        """The first entry of the open run that `entry` belongs to."""
        key = _key(entry)
        row = None if key is None else self._open.get(key)
        return None if row is None else row.entry

    def flush(self) -> list[Row]:
        """The rows of the runs that are open."""
        rows = list(self._open.values())
        self._open.clear()
        return rows


def rows(entries: Iterable[Entry]) -> Iterator[Row]:
    """All rows of a trace."""
    runs = Runs()
    for entry in entries:
        yield from runs.add(entry)
    yield from runs.flush()


def _key(entry: Entry) -> tuple[object, ...] | None:
    """What chunks of one run have in common; None for what is no chunk."""
    event = entry.event
    if entry.update in CHUNKS and entry.text is not None:
        content = entry.fields.get("update")
        message = content.get("messageId") if isinstance(content, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        session = entry.session_id or entry.fields.get("session")
        # Whatever they are: an agent may send an object for an id.
        return event.ch, event.dir, event.n, repr(session), entry.update, repr(message)  # pyright: ignore[reportUnknownArgumentType]
    if event.kind in _BODIES:
        return event.ch, event.dir, event.n, event.kind
    return None
