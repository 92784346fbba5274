"""The process that writes the trace file: forked by the recorder, alone with the disk.

Owns: the file and the loop from ring to file. Rules: the bridge never waits for it, so a slow disk
slows nobody; it ends after the bridge, however that came to its end, with everything written that
the bridge had posted; a failed write ends the recording, and the file with its last
whole line. Why a process: docs/decisions/0010-scribe.md. Called by `bridge.trace.recorder`.
"""

import os
import select
import threading
import time
from typing import NoReturn

from bridge.io.forked import keep_only
from bridge.trace.ledger import Ledger
from bridge.trace.ring import Ring
from bridge.wire import codec

_JOINED = 1 << 22
_OUTLIVING = 5.0
"""Seconds the scribe has after the bridge's end, should the disk not let it go on."""


def serve(ring: Ring, report: int, file: int, ledger: Ledger, first: bytes) -> NoReturn:
    """The scribe's whole life. Writes why it failed to `report`; nothing there means all is well.

    `first`: the head, to begin with.
    """
    try:
        keep_only(ring.written_end, ring.read_end, report, file, name=b"acp-scribe")
        threading.Thread(target=_outlive, args=(ring.written_end,), daemon=True).start()
        words = _write_down(ring, file, ledger, first)
        if words:
            os.write(report, words.encode(errors="backslashreplace"))
    finally:
        os._exit(0)


def _outlive(fd: int) -> None:
    """Ends the process a while after the bridge has closed its end, stuck or not."""
    poll = select.poll()
    poll.register(fd, 0)
    poll.poll()
    time.sleep(_OUTLIVING)
    os._exit(1)


def _write_down(ring: Ring, file: int, ledger: Ledger, first: bytes) -> str | None:
    """Why the recording ended early, None if it did not."""
    written = _Book(file)
    try:
        written.add([first])
        _copy(ring, written, ledger)
        ledger.end()
        reason = "closed" if ledger.complete else "the bridge ended without closing the recording"
        written.add([*ledger.take(), _end(ledger.last, reason)])
    except OSError as error:
        words = error.strerror or str(error)
        written.give_up(_end(ledger.last, words))
        return words
    except Exception as error:  # noqa: BLE001 - told to the bridge, in whose log it belongs
        return f"{type(error).__name__}: {error}"
    return None


def _copy(ring: Ring, written: "_Book", ledger: Ledger) -> None:
    reader = ring.reader()
    while data := reader.receive():
        ledger.feed(data)
        written.add(ledger.take())


def _end(t: int, reason: str) -> bytes:
    fields = {"t": t, "ch": "trace", "kind": "end", "data": {"reason": reason}}
    return codec.encode(fields) + b"\n"


class _Book:
    """The file, of which only whole lines are to be left."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._seekable = _seekable(file)
        self._at = os.lseek(file, 0, os.SEEK_END) if self._seekable else 0
        self._whole = self._at
        """Where the last whole line ends."""

    def add(self, pieces: list[bytes]) -> None:
        """Appends whole lines; raises OSError."""
        if sum(map(len, pieces)) <= _JOINED:
            pieces = [b"".join(pieces)]
        for piece in pieces:
            self._write(piece)

    def _write(self, piece: bytes) -> None:
        data, done = memoryview(piece), 0
        try:
            while done < len(data):
                done += os.write(self._file, data[done:])
        finally:
            if cut := piece.rfind(b"\n", 0, done) + 1:
                self._whole = self._at + cut
            self._at += done

    def give_up(self, last: bytes) -> None:
        """Takes off a line that was not completed, and adds a last one if there is room."""
        try:
            if self._seekable:
                os.ftruncate(self._file, self._whole)
            os.write(self._file, last)
        except OSError:
            return


def _seekable(file: int) -> bool:
    try:
        os.lseek(file, 0, os.SEEK_CUR)
    except OSError:
        return False
    return True
