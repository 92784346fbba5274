"""A trace as a trace: the wanted lines, secrets masked. Reads back with every command."""

from collections.abc import Iterable, Iterator

from bridge.trace.ledger import content
from bridge.trace.reader import Event
from bridge.trace.timeline import Entry
from bridge.wire import codec
from protocol_schemas.trace import Head

_NS = 1_000_000_000


def lines(items: Iterable[Entry | Head], *, masking: bool) -> Iterator[bytes]:
    """The file's lines. Times are kept, as nanoseconds since those of the head before."""
    start = 0
    for item in items:
        if isinstance(item, Entry):
            yield line(item.event, start)
            continue
        start = item.t
        if masking:
            item.secrets = "masked"
        yield codec.encode(item) + b"\n"


def line(event: Event, start: int) -> bytes:
    """One record."""
    members = {
        "t": start + round(event.t * _NS),
        "ch": event.ch,
        "dir": event.dir,
        "session": event.session,
        "n": event.n,
        "kind": event.kind,
        "data": event.data or None,
        "end": None if event.end == "\n" else event.end,
    }
    text = codec.encode({name: value for name, value in members.items() if value is not None})
    if event.content is None:
        return text + b"\n"
    return b"".join((text[:-1], b",", *content(event.content), b"}\n"))
