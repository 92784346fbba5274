"""The daemon's own three descriptors, claimed so that nothing but us can use them.

Rule: after `claim`, fd 1 is a copy of stderr and fd 0 is empty: a print from any library lands in
the log, never on the wire, and no child can inherit the host's pipes. Called by the app, once.
"""

import os
import sys
from typing import TextIO

from bridge.io.pipes import FdReader, FdWriter, reopen

_STDERR_BACKLOG = 1 << 20


def claim() -> tuple[FdReader, FdWriter]:
    """The host's pipe in and out, taken off fd 0 and 1."""
    reader = FdReader(reopen(0, os.O_RDONLY))
    writer = FdWriter(reopen(1, os.O_WRONLY))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
    os.close(nothing)
    sys.stdout, sys.stderr = _printing(1), _printing(2)
    return reader, writer


def _printing(fd: int) -> TextIO:
    """What a library prints must neither fail for the locale nor wait in a buffer. A new stream:
    the old one may have been made for a file, and fails on what the descriptor is now."""
    return open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


class Stderr:
    """Our stderr, written without waiting: a host that does not read it loses the middle of what
    is over `backlog` bytes behind, and is told so. Its writer's `run` needs a task."""

    def __init__(self, backlog: int = _STDERR_BACKLOG) -> None:
        self.writer = FdWriter(reopen(2, os.O_WRONLY))
        self._backlog = backlog
        self._dropped = 0

    def write(self, data: bytes) -> None:
        if self.writer.queued > self._backlog:
            self._dropped += len(data)
            return
        if self._dropped:
            note = f"acp-mcp-bridge: {self._dropped} bytes of stderr were not read in time\n"
            self._dropped = 0
            self.writer.post(note.encode())
        self.writer.post(data)
