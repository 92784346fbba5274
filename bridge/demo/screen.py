"""What the demo prints: one line a thing that happened, with its time and who it came from.

Owns: the columns and the colours, which are left out where they would not be seen as such.
"""

import os
import sys
import time
from typing import TextIO

_COLOURS = {"host": 36, "bridge": 35, "agent": 32, "model": 33, "mcp": 34}
_WIDTH = 96


class Screen:
    """The demo's output. Times count from when it was made."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._began = time.monotonic()
        self._colours = out.isatty() and not os.environ.get("NO_COLOR")

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def title(self, text: str) -> None:
        """A new step."""
        self._out.write(f"\n{self._paint(text, 1)}\n")
        self._out.flush()

    def line(self, who: str, text: str) -> None:
        """Something that `who` (host, bridge, agent, model, mcp) said or did."""
        shown = text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
        name = self._paint(f"{who:>6}", _COLOURS[who])
        self._out.write(f"  {self._paint(f'{self.seconds:5.2f}s', 2)} {name}  {shown}\n")
        self._out.flush()

    def plain(self, text: str) -> None:
        """A line of its own."""
        self._out.write(f"{text}\n")
        self._out.flush()

    def _paint(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colours else text
