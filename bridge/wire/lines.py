"""Newline framing (ACP over stdio, line packets): bytes in, whole lines out.

Owns: what has come of the line that is not complete yet, as a list of parts (`+=` on a growing
buffer is quadratic). Rule: a line ends at `\n` and nowhere else; U+2028 and its like are text.
"""

from collections.abc import Iterable


class LineTooLong(Exception):
    """A line passed the ceiling. `size`: bytes seen of it so far; `ceiling`: bytes allowed."""

    def __init__(self, size: int, ceiling: int) -> None:
        super().__init__(f"a line of more than {ceiling} bytes (the ceiling for one message)")
        self.size = size
        self.ceiling = ceiling


class LineFramer:
    """Splits a stream at `\n`. The lines keep a `\r` before it, and come without the `\n`."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterable[bytes]:
        """The lines that `data` completes, in order; raises LineTooLong, after which it is done.

        `data`: no more than `ceiling` bytes, so that no line is too long all by itself.
        """
        lines = data.split(b"\n")
        rest = lines.pop()
        if self._parts and lines:
            self._parts.append(lines[0])
            if self._size + len(lines[0]) > self.ceiling:
                raise LineTooLong(self._size + len(lines[0]), self.ceiling)
            lines[0] = b"".join(self._parts)
            self._parts = []
            self._size = 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
            if self._size > self.ceiling:
                raise LineTooLong(self._size, self.ceiling)
        return lines

    def end(self) -> bytes:
        """What stands after the last `\n`: a final line without its end, or nothing."""
        rest = b"".join(self._parts)
        self._parts = []
        self._size = 0
        return rest
