"""The daemon's log: stdlib logging to stderr, one line a record, never on stdout.

Owns: the format and the sink. Rule: writing a log line never blocks the loop and never raises,
whatever the locale; the app replaces `sink` with a bounded writer. (logging is loaded by asyncio
anyway; structlog would cost 70 ms at the first line: docs/decisions/0002-few-imports.md.)
"""

import contextlib
import logging
import os
from collections.abc import Callable

log = logging.getLogger("acp-mcp-bridge")


def _to_stderr(data: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(2, data)


class _Handler(logging.Handler):
    sink: Callable[[bytes], None] = staticmethod(_to_stderr)

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record).replace("\n", "\n  ")
        self.sink(f"acp-mcp-bridge: {text}\n".encode(errors="backslashreplace"))


_handler = _Handler()
_handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
log.addHandler(_handler)
log.propagate = False
log.setLevel(logging.WARNING)


def configure(level: str = "warning", sink: Callable[[bytes], None] | None = None) -> None:
    """Sets the level (debug, info, warning or error) and where lines go."""
    log.setLevel(level.upper())
    if sink is not None:
        _handler.sink = sink


def debugging() -> bool:
    """Whether tracebacks are wanted."""
    return log.isEnabledFor(logging.DEBUG)
