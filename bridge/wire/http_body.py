"""HTTP/1.1 message bodies, sans-IO: where does a body end, and what is in it?

Rule: a decoder takes bytes as they come and gives back which of them were the body's (`raw`, with
their framing: what a relay passes on), what they hold, and the bytes behind the body's end. Chunked
framing is llhttp's business; a length is counted. One decoder a message; both directions.
"""

import re
from typing import Protocol

import msgspec

from bridge.wire.http_head import Framing, Headers

_PRIMER = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_END = b"\r\n\r\n"
_TRAILER_LIMIT = 1000


class BadBody(ValueError):
    """Framing that is broken, or a body that was cut off."""


class Piece(msgspec.Struct, gc=False):
    """What one call of `feed` found: the body's bytes as framed and as meant, and what follows."""

    raw: bytes
    data: bytes
    rest: bytes


class Body(Protocol):
    """A body's decoder. `done` once the body has ended; `trailers` are those of a chunked one."""

    done: bool
    trailers: Headers

    def feed(self, data: bytes) -> Piece:
        """Takes the next bytes of the stream. Raises BadBody."""
        ...

    def eof(self) -> None:
        """The stream has ended. Raises BadBody unless the body may end there."""
        ...


def body(framing: Framing, length: int = 0) -> Body:
    """The decoder for a head's framing."""
    if framing in ("length", "none"):
        return _Counted(length if framing == "length" else 0)
    return _Chunked() if framing == "chunked" else _ToTheEnd()


def last_chunk(trailers: Headers) -> bytes:
    """The end of a chunked body."""
    return b"0\r\n%b\r\n" % b"".join([b"%b: %b\r\n" % pair for pair in trailers])


class _Counted:
    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0
        self.trailers: Headers = []

    def feed(self, data: bytes) -> Piece:
        left = self._left - len(data)
        if left >= 0:
            self._left, self.done = left, not left
            return Piece(data, data, b"")
        self._left, self.done = 0, True
        return Piece(data[:left], data[:left], data[left:])

    def eof(self) -> None:
        if self._left:
            raise BadBody(f"the body was cut off, {self._left} bytes before its end")


class _ToTheEnd:
    def __init__(self) -> None:
        self.done = False
        self.trailers: Headers = []

    def feed(self, data: bytes) -> Piece:
        return Piece(data, data, b"")

    def eof(self) -> None:
        self.done = True


def _ends(data: bytes, known: int) -> list[int]:
    """Behind each CR LF CR LF in the data, counted without its first, known bytes."""
    return [found.end() - known for found in re.finditer(_END, data) if found.end() > known]


class _Chunked:
    """llhttp, fed so that it never sees a byte behind the body.

    It does not tell where a message ended. But a chunked body ends only where CR LF CR LF stands,
    so the bytes are fed up to there, one such place after the other.
    """

    def __init__(self) -> None:
        # httptools takes 12 ms to import, and most bodies have a length.
        from httptools import HttpParserError, HttpResponseParser

        self.done = False
        self.trailers: Headers = []
        self._parts: list[bytes] = []
        self._tail = b""
        self._error = HttpParserError
        self._parser = HttpResponseParser(self)
        self._parser.feed_data(_PRIMER)
        self.trailers.clear()

    def on_header(self, name: bytes, value: bytes) -> None:
        self.trailers.append((name, value))
        if len(self.trailers) > _TRAILER_LIMIT:
            raise BadBody("too many trailers")

    def on_body(self, data: bytes) -> None:
        self._parts.append(data)

    def on_message_complete(self) -> None:
        self.done = True

    def feed(self, data: bytes) -> Piece:
        if self.done:
            return Piece(b"", b"", data)
        seam = self._tail + data[:3]
        self._tail = data[-3:] if len(data) >= 3 else (self._tail + data)[-3:]
        if _END not in data and _END not in seam:
            self._parse(data)
            return Piece(data, self._found(), b"")
        start = 0
        for end in (*_ends(seam, len(seam) - len(data[:3])), *_ends(data, 0), len(data)):
            if end > start:
                self._parse(data[start:end])
                start = end
            if self.done:
                break
        return Piece(data[:start], self._found(), data[start:])

    def _found(self) -> bytes:
        parts, self._parts = self._parts, []
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except self._error as error:
            raise BadBody(f"broken chunked framing: {error}") from None

    def eof(self) -> None:
        raise BadBody("the body was cut off before its last chunk")
