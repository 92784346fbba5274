"""Host framing (HOST_PROTOCOL §1): length-prefixed packets or lines, told by the first byte.

Owns: the ceiling, and staying in step. Rules: a stream that begins with 0x00 is 8-byte big-endian
lengths and bodies, any other is lines, for good; a prefix over the ceiling ends the stream before
anything is allocated for it. Called by `bridge.host.server` and `bridge.client`.
"""

from collections.abc import Iterator

from bridge.wire import codec
from bridge.wire.lines import LineFramer, LineTooLong

CEILING = 128 * 1024 * 1024
_PREFIX = 8


class PacketTooLarge(Exception):
    """The stream cannot be in step any more."""

    def __init__(self, size: int, ceiling: int) -> None:
        super().__init__(f"a packet of {size} bytes; the ceiling is {ceiling}")


class PacketFramer:
    """Cuts the bodies out of a host's stream."""

    def __init__(self, ceiling: int = CEILING) -> None:
        self.ceiling = ceiling
        self._lines: LineFramer | None = None
        self.prefixed: bool | None = None
        """None until the first byte has come."""
        self._parts: list[bytes] = []
        self._have = 0
        self._need: int | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bodies that `data` completes; raises PacketTooLarge when it is their turn."""
        if self.prefixed is None and data:
            self.prefixed = data[0] == 0
            if not self.prefixed:
                self._lines = LineFramer(self.ceiling)
        if self._lines is not None:
            yield from self._feed_lines(self._lines, data)
            return
        self._parts.append(data)
        self._have += len(data)
        if self._have < (_PREFIX if self._need is None else self._need):
            return
        whole = b"".join(self._parts) if len(self._parts) > 1 else data
        start, end = 0, len(whole)
        while True:
            if self._need is None:
                if end - start < _PREFIX:
                    break
                self._need = int.from_bytes(whole[start : start + _PREFIX])
                start += _PREFIX
                if self._need > self.ceiling:
                    raise PacketTooLarge(self._need, self.ceiling)
            if end - start < self._need:
                break
            body = whole[start : start + self._need]
            start += self._need
            self._need = None
            yield body
        self._parts = [whole[start:]]
        self._have = end - start

    def _feed_lines(self, lines: LineFramer, data: bytes) -> Iterator[bytes]:
        try:
            complete = lines.feed(data)
        except LineTooLong as error:
            raise PacketTooLarge(error.size, self.ceiling) from None
        for line in complete:
            if body := line.removeprefix(codec.BOM).strip():
                yield body

    def end(self) -> bytes:
        """At EOF: a last line without its `\n` (a torn packet is dropped)."""
        if self._lines is None:
            return b""
        return self._lines.end().removeprefix(codec.BOM).strip()


def frame(body: bytes, *, prefixed: bool) -> tuple[bytes, bytes]:
    """The two parts of a packet, in order; the body is not copied."""
    if prefixed:
        return len(body).to_bytes(_PREFIX), body
    return body, b"\n"
