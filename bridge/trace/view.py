"""A trace on the terminal: `trace show` and `trace tail`.

Owns: the way from a file to lines on stdout. Rules: what is shown is shown as it is read, so that
any trace can be looked at, however long, and while it grows; only conditions that depend on what
comes later (`is:unanswered`, `latency` of a request) need the whole first. Called by
`bridge.cli.trace`.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import BinaryIO, TextIO

import msgspec

from bridge.trace import reader
from bridge.trace.filter import compile_filter
from bridge.trace.reader import Damage, Event, Item
from bridge.trace.render import Screen
from bridge.trace.runs import Row, Runs
from bridge.trace.timeline import Entry, Timeline
from protocol_schemas.trace import Head

_LOOKING_AHEAD = ("unanswered", "latency")


class Selection(msgspec.Struct):
    """What to look at: a file, a filter, whether to go on as it grows."""

    path: str
    filter: str = ""
    follow: bool = False


Found = Entry | Head | Damage


def select(selection: Selection) -> Iterator[Found | None]:
    """The wanted entries of a trace, in order, with heads and damage among them; None when there
    is no more for the moment. Raises UsageError."""
    wanted = compile_filter(selection.filter)
    found = _entries(selection)
    if not selection.follow and any(word in selection.filter for word in _LOOKING_AHEAD):
        found = iter(list(found))
    for item in found:
        if not isinstance(item, Entry) or wanted(item):
            yield item


def entries(path: str, filter_text: str = "") -> list[Entry]:
    """The wanted entries of a whole trace. Raises UsageError."""
    found = list(_entries(Selection(path)))
    wanted = compile_filter(filter_text)
    return [item for item in found if isinstance(item, Entry) and wanted(item)]


def _entries(selection: Selection) -> Iterator[Found | None]:
    timeline = Timeline()
    items: Iterable[Item | None] = (
        reader.follow(selection.path) if selection.follow else reader.read(selection.path)
    )
    for item in items:
        if isinstance(item, Event):
            yield timeline.add(item)
            continue
        if isinstance(item, Head):
            timeline.restart()
        yield item


def print_rows(
    selection: Selection, screen: Screen, out: TextIO, *, collapse: bool, last: int | None
) -> None:
    """Writes a line a row. `last`: of what is there at first only so many rows. Raises
    UsageError."""
    for line in _lines(selection, screen, collapse=collapse, last=last):
        out.write(line + "\n")
        if selection.follow:
            out.flush()


def _lines(
    selection: Selection, screen: Screen, *, collapse: bool, last: int | None
) -> Iterator[str]:
    runs = Runs()
    kept: deque[str] | None = None if last is None else deque(maxlen=max(last, 0))

    def lines(rows: Iterable[Row]) -> Iterator[str]:
        for row in rows:
            yield from screen.lines(row)

    def texts(item: Found | None) -> Iterator[str]:
        if isinstance(item, Entry):
            if collapse:
                yield from lines(runs.add(item))
            else:
                yield from screen.lines(Row(item, item, 1, len(item.event.content or b"")))
            return
        yield from lines(runs.flush())
        if isinstance(item, Head):
            yield screen.head(item)
        elif item is not None:
            yield screen.damage(item.line, item.reason)

    for item in select(selection):
        if kept is None:
            yield from texts(item)
            continue
        kept.extend(texts(item))
        if item is None:
            yield from kept
            kept = None
    rest = lines(runs.flush())
    if kept is None:
        yield from rest
    else:
        kept.extend(rest)
        yield from kept


def write_raw(selection: Selection, out: BinaryIO, *, last: int | None = None) -> None:
    """Writes the recorded bytes of the wanted entries, each with the end it had; of what is there
    at first only the `last`. Raises UsageError."""
    kept: deque[bytes] | None = None if last is None else deque(maxlen=max(last, 0))
    for item in select(selection):
        if isinstance(item, Entry) and item.event.content is not None:
            (out.write if kept is None else kept.append)(_raw(item.event))
        elif item is None and kept is not None:
            out.writelines(kept)
            kept = None
        if selection.follow:
            out.flush()
    out.writelines(kept or ())


def _raw(event: Event) -> bytes:
    end = "\n" if event.kind is None else ""
    return (event.content or b"") + (event.end if event.end != "\n" else end).encode()
