"""Lines that a person types, or a pipe brings, read when they are asked for.

Rule: a question that is called off takes nothing: what was typed is there for the next one. The
terminal's own editing is all there is. Used by `bridge.cli.chat`.
"""

import os

from bridge.io.pipes import FdReader, reopen


class Keyboard:
    """The lines of a descriptor, which is left as it is."""

    def __init__(self, fd: int = 0) -> None:
        self.terminal = os.isatty(fd)
        self._fd = fd
        self._reader = FdReader(reopen(fd, os.O_RDONLY))
        self._text = b""

    async def line(self) -> str | None:
        """The next line without its end; None at the end of the input."""
        while b"\n" not in self._text:
            data = await self._reader.receive()
            if not data:
                line, self._text = self._text, b""
                return line.decode(errors="replace") or None
            self._text += data
        line, _, self._text = self._text.partition(b"\n")
        return line.removesuffix(b"\r").decode(errors="replace")

    def forget(self) -> None:
        """Drops what was typed ahead in a terminal: it was meant for another question."""
        if self.terminal:
            import termios  # only in a terminal

            self._text = b""
            termios.tcflush(self._fd, termios.TCIFLUSH)

    def close(self) -> None:
        self._reader.close()
