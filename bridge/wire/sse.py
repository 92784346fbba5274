"""Server-sent events (WHATWG HTML §9.2): `Parser`, bytes in, events out; `encode`, the way back.

Rule: the bytes may be cut anywhere, inside a UTF-8 character or between CR and LF, and the events
are the same. Nothing is held but the event that is not whole yet, and that is bounded.
Used by the embedded agent's model client, the MCP proxy and the model proxy's bookkeeping.
"""

import msgspec

LIMIT = 128 << 20
_BOM = b"\xef\xbb\xbf"


class SSEError(ValueError):
    """An event larger than the parser's limit."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event: its type (`message` if it has none), its data, the last id seen so far.

    `data` is as sent (several `data:` lines joined by LF), so that JSON is decoded from bytes.
    `retry` is the reconnection time in milliseconds if the event set one.
    """

    name: str
    data: bytes
    id: str = ""
    retry: int | None = None

    @property
    def text(self) -> str:
        """The data as text; bytes that are not UTF-8 become U+FFFD."""
        return self.data.decode(errors="replace")


class Parser:
    """One stream's parser. What the stream ends in the middle of is no event, as the standard has
    it; `rest` has its data. `last_id` and `reconnection_ms` are what a client that
    connects anew has to honour: they are set by fields, also of events without data.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._size = 0
        self._partial: list[bytes] = []
        self._partial_size = 0
        self._first = True
        self._after_cr = False
        self._name = b""
        self._data: list[bytes] = []
        self._id = ""
        self._retry: int | None = None
        self.reconnection_ms: int | None = None

    @property
    def last_id(self) -> str:
        """The last id the stream gave, empty if none."""
        return self._id

    @property
    def rest(self) -> bytes:
        """The data of an event that has begun and that no blank line has ended: no event by the
        standard, for whoever would rather have that than nothing."""
        line = b"".join(self._partial)
        last = [line[5:].removeprefix(b" ")] if line.startswith(b"data:") else []
        return b"\n".join([*self._data, *last])

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete, in order. Raises SSEError over the limit."""
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if not data:
            return []
        lines = data.splitlines()
        last = data[-1]
        self._after_cr = last == 13
        rest = b"" if last in b"\r\n" else lines.pop()
        if lines and self._partial:
            self._partial.append(lines[0])
            lines[0] = b"".join(self._partial)
            self._partial, self._partial_size = [], 0
        events: list[Event] = []
        for line in lines:
            if self._first:
                self._first = False
                line = line.removeprefix(_BOM)
            if not line:
                self._dispatch(events)
            else:
                self._field(line)
        if rest:
            self._partial.append(rest)
            self._partial_size += len(rest)
            self._check()
        return events

    def _check(self) -> None:
        if self._size + self._partial_size > self._limit:
            raise SSEError(f"an event of more than {self._limit} bytes")

    def _field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value)
            self._check()
        elif field == b"event":
            self._name = value
        elif field == b"id":
            if b"\0" not in value:
                self._id = value.decode(errors="replace")
        elif field == b"retry" and value.isdigit():
            self._retry = self.reconnection_ms = int(value[:18])

    def _dispatch(self, events: list[Event]) -> None:
        if self._data:
            name = self._name.decode(errors="replace") or "message"
            events.append(Event(name, b"\n".join(self._data), self._id, self._retry))
            self._data = []
        self._name, self._retry, self._size = b"", None, 0


def encode(data: bytes) -> bytes:
    """A message event as bytes; every line of `data` gets a `data:` line of its own."""
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"data: %b\n\n" % b"\ndata: ".join(lines)
