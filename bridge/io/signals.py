"""Signals that end a program in order, and what becomes of those that come too early or too late.

Rule: before the receiver stands there is nothing to end in order, and a signal ends the process at
once; when it is left everything is being ended, and a signal changes nothing any more. Without
that, a late one kills the process with another exit code and what it still has to do undone:
asyncio restores the default then, and trio hands on what nobody has read. Used by the commands that
end in order by signals; a chat, to which Ctrl-C means more than one thing, sees to its own.
"""

import signal
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from types import FrameType

import anyio


@contextmanager
def receive(*numbers: signal.Signals) -> Generator[AsyncIterator[signal.Signals]]:
    """The signals, as they come; only the main thread may ask for them."""
    standing = False

    def meanwhile(number: int, frame: FrameType | None) -> None:
        if not standing:
            raise SystemExit(128 + number)

    def install() -> None:
        for number in numbers:
            signal.signal(number, meanwhile)

    install()
    try:
        with anyio.open_signal_receiver(*numbers) as received:
            standing = True
            yield received
    finally:
        install()
