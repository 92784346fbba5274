"""What the demo prints: one line a thing that happened, with its time and who it came from.

Owns: the columns and the colours, which are left out where they would not be seen as such. Text
that streams stays on one line and grows there as it comes.
"""

import os
import sys
import time
from collections.abc import Mapping
from typing import TextIO

_COLOURS = {"host": 36, "bridge": 35, "agent": 32, "model": 33, "mcp": 34}
_BOLD, _DIM = 1, 2
_WIDTH = 96


class Screen:
    """The demo's output. Times count from when it was made."""

    def __init__(
        self, out: TextIO | None = None, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._out = out or sys.stdout
        self._began = time.monotonic()
        self._speaker = ""
        self._colours = (
            self._out.isatty()
            and not environment.get("NO_COLOR")
            and environment.get("TERM") != "dumb"
        )

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def title(self, text: str) -> None:
        """A new step."""
        self._end_line()
        self._write(f"\n{self._paint(text, _BOLD)}\n")

    def line(self, who: str, text: str) -> None:
        """Something that `who` (host, bridge, agent, model, mcp) said or did."""
        self._end_line()
        shown = text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
        self._write(f"{self._margin(who)}{shown}\n")

    def stream(self, who: str, piece: str) -> None:
        """The next piece of what `who` is saying."""
        if self._speaker != who:
            self._end_line()
            self._write(self._margin(who))
            self._speaker = who
        self._write(piece.replace("\n", " "))

    def pause(self) -> None:
        """Whoever is speaking has come to an end."""
        self._end_line()

    def plain(self, text: str) -> None:
        """A line of its own."""
        self._end_line()
        self._write(f"{text}\n")

    def _margin(self, who: str) -> str:
        clock = self._paint(f"{self.seconds:5.2f} s", _DIM)
        return f"  {clock}  {self._paint(f'{who:>6}', _COLOURS[who])}  "

    def _end_line(self) -> None:
        if self._speaker:
            self._speaker = ""
            self._write("\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _paint(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colours else text
