"""What a chat shows: the agent's words on stdout, all else on stderr, a line each.

Rule: nothing an agent says can steer the terminal: control characters are left out. Where both go
to one terminal, neither begins in the middle of the other's line. Used by `bridge.cli.chat`.
"""

import os
import sys
from collections.abc import Mapping
from typing import TextIO

from bridge.trace.summary import one_line

_DIM = "\x1b[2m{}\x1b[0m"


class Screen:
    """The two streams, and which of them is within a line."""

    def __init__(
        self,
        out: TextIO | None = None,
        err: TextIO | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._within: tuple[TextIO, str] | None = None
        self._colours = (
            self._err.isatty()
            and not environment.get("NO_COLOR")
            and environment.get("TERM") != "dumb"
        )

    def say(self, text: str) -> None:
        """The next piece of the agent's words."""
        self._stream(
            (self._out, "words"), "".join(c for c in text if c.isprintable() or c in "\n\t")
        )

    def think(self, text: str) -> None:
        """The next piece of its thoughts, for a terminal only."""
        if self._err.isatty():
            self._stream((self._err, "thoughts"), self._dim(one_line(text)))

    def note(self, *lines: str) -> None:
        """Lines about what happens."""
        self.pause()
        for line in lines:
            self._write(self._err, f"{self._dim(one_line(line))}\n")

    def ask(self, text: str) -> None:
        """A question, to be answered on its line."""
        self._stream((self._err, "question"), one_line(text))

    def answered(self) -> None:
        """The answer's own line end is on the terminal: the question's line has ended."""
        self._within = None

    def pause(self) -> None:
        """Ends the line that something is within."""
        if self._within is not None:
            self._write(self._within[0], "\n")
            self._within = None

    def _stream(self, to: tuple[TextIO, str], text: str) -> None:
        if text:
            if self._within != to:
                self.pause()
            self._write(to[0], text)
            self._within = None if text.endswith("\n") else to

    def _write(self, stream: TextIO, text: str) -> None:
        stream.write(text)
        stream.flush()

    def _dim(self, text: str) -> str:
        return _DIM.format(text) if self._colours else text
