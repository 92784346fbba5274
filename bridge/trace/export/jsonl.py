"""A trace as a trace: the wanted lines, secrets masked. Reads back with every command."""

from collections.abc import Iterable, Iterator

from bridge.trace.ledger import content
from bridge.trace.reader import Event
from bridge.wire import codec
from protocol_schemas.trace import Head

_NS = 1_000_000_000


def lines(head: Head | None, events: Iterable[Event], *, masking: bool) -> Iterator[bytes]:
    """The file's lines. Times are kept, as nanoseconds since the head's."""
    start = 0
    if head is not None:
        start = head.t
        if masking:
            head.secrets = "masked"
        yield codec.encode(head) + b"\n"
    for event in events:
        yield line(event, start)


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
