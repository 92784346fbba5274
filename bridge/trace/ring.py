"""The way from the recorder to its scribe: a ring of shared memory.

Owns: what has been posted and is not in the ring yet. Rules: `post` never waits; what is posted is
in the ring when it returns, as long as there is room, and what is in the ring is read to its end,
however the writer's process came to its own. While both sides are busy neither makes a system
call for the other: the reader looks again after a nap. One that naps is woken when the ring is
nearly full, one that sleeps by whatever comes, with a byte in a pipe; the pipes' ends also tell
that the other side is gone.

The positions, of all bytes from the start, stand in the ring's first page, each on a line of the
cache to itself. Whenever the reader has everything, the writer begins again at the start of the
memory: what is little never leaves its first pages, and they are all that is used of it. Made
before the fork, which shares it. Used by `bridge.trace.recorder` and `bridge.trace.scribe`.
"""

import mmap
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable

import anyio

_SIZE = 1 << 23
"""What agents write at once finds room in it, so that the reader need not work beside them."""
_MUCH = _SIZE * 3 // 4
"""Bytes in the ring for which a reader is woken from its nap."""
_PAGE = 4096
_HEAD, _TAIL, _STATE, _WAITING, _BASE = 0, 8, 16, 24, 32
"""Where in the first page: written so far, read so far, what the reader does, whether the writer
is to be woken by the next room, where the writer last began again: nothing stands between what had
been read by then and that."""
_AWAKE, _NAPPING, _ASLEEP = 0, 1, 2
_BUSY = 1 << 17
_NAP_MS = 50
"""Between two looks of a reader to whom little comes. Its work takes a core from those that are
recorded and cools their caches, where there are few: seldom and much at once is the least of it."""
_NAPS = 10
"""Looks in vain, after which it sleeps."""
_DOZE_MS = 1000


class _Side:
    """The ring as either side sees it."""

    def __init__(self, memory: memoryview) -> None:
        self._words = memory[:_PAGE].cast("Q")
        self._ring = memory[_PAGE:]
        self._lock = threading.Lock()
        self._lock.acquire()

    def _order(self) -> None:
        """What was stored before is seen before what is stored, or loaded, behind this. A release
        and an acquisition of one lock are a memory barrier, the only one that Python has."""
        self._lock.release()
        self._lock.acquire()


class RingWriter(_Side):
    """The recorder's side. `on_broken` is called once, if the reader is gone."""

    def __init__(self, memory: memoryview, wake: int, woken: int, on_broken: Callable[[], None]):
        super().__init__(memory)
        os.set_blocking(wake, False)
        os.set_blocking(woken, False)
        self._wake = wake
        self._woken = woken
        self._on_broken = on_broken
        self._head = self._base = 0
        self._room = _SIZE
        """What there was when it was last looked for, less what was used since."""
        self._queue: deque[memoryview] = deque()
        self._broken = False
        self.queued = 0
        """Bytes posted and not in the ring yet."""

    def post(self, *parts: bytes | bytearray | memoryview) -> None:
        """Puts a frame, in parts, behind those before it."""
        if self._broken:
            return
        size = sum(map(len, parts))
        self._begin_again()
        if self._queue or (size > self._room and size > self._look()):
            # The caller may change its buffer.
            self._queue.extend(memoryview(bytes(part)) for part in parts)
            self.queued += size
            self.flush()
            return
        for part in parts:
            self._put(part)
        self._commit()

    def _begin_again(self) -> None:
        """Goes to the start of the memory if the reader has all there is."""
        if (used := self._head % _SIZE) and self._words[_TAIL] == self._head:
            self._head += _SIZE - used
            self._words[_BASE] = self._base = self._head
            self._room = _SIZE

    def _put(self, part: bytes | bytearray | memoryview) -> None:
        """Copies what there is room for; to be committed."""
        at = self._head % _SIZE
        end = at + len(part)
        if end <= _SIZE:
            self._ring[at:end] = part
        else:
            view = memoryview(part)
            self._ring[at:] = view[: _SIZE - at]
            self._ring[: end - _SIZE] = view[_SIZE - at :]
        self._head += len(part)
        self._room -= len(part)

    def _commit(self) -> None:
        self._order()
        self._words[_HEAD] = self._head
        self._order()
        if (state := self._words[_STATE]) and (state == _ASLEEP or self._holds_much()):
            self._words[_STATE] = _AWAKE
            try:
                os.write(self._wake, b"\0")
            except BlockingIOError:
                return
            except OSError:
                self._break()

    def _holds_much(self) -> bool:
        return _SIZE - self._room > _MUCH and _SIZE - self._look() > _MUCH

    def _look(self) -> int:
        """The room there is now."""
        self._room = _SIZE - (self._head - max(self._words[_TAIL], self._base))
        self._order()
        return self._room

    async def run(self) -> None:
        """Passes on what found no room, and notices that the reader has gone; until cancelled."""
        while not self._broken:
            await anyio.wait_readable(self._woken)
            self._heard()
            self.flush()

    def finish(self, within: float) -> None:
        """Passes on the rest, blocking for so many seconds at most, and closes."""
        deadline = time.monotonic() + within
        self.flush()
        while self._queue and (left := deadline - time.monotonic()) > 0:
            select.select([self._woken], [], [], left)
            self._heard()
            self.flush()
        self._broken = True
        os.close(self._wake)
        os.close(self._woken)

    def flush(self) -> None:
        """Moves what the ring takes."""
        while self._queue and not self._broken:
            if not self._look():
                self._words[_WAITING] = 1
                self._order()
                if not self._look():
                    return
            part = self._queue[0][: self._room]
            self._put(part)
            self.queued -= len(part)
            if len(part) < len(self._queue[0]):
                self._queue[0] = self._queue[0][len(part) :]
            else:
                self._queue.popleft()
            self._commit()

    def _heard(self) -> None:
        """Takes the bytes that woke us; their end is the reader's."""
        try:
            if not os.read(self._woken, _PAGE):
                self._break()
        except BlockingIOError:
            return

    def _break(self) -> None:
        if self._broken:
            return
        self._broken = True
        self._queue.clear()
        self.queued = 0
        self._on_broken()


class RingReader(_Side):
    """The scribe's side."""

    def __init__(self, memory: memoryview, woken: int, wake: int) -> None:
        super().__init__(memory)
        self._woken = woken
        self._wake = wake
        self._tail = 0
        self._little = False
        self._gone = False
        self._poll = select.poll()
        self._poll.register(woken, select.POLLIN)

    def receive(self) -> bytes:
        """What has been written since; blocks for it. b"" at the end."""
        naps = 0
        while True:
            if self._little and not self._gone:
                # One write of what has come meanwhile.
                self._wait(_NAPPING, _NAP_MS)
            head = self._words[_HEAD]
            if head > self._tail:
                return self._take(head)
            if self._gone:
                return b""
            naps += 1
            if naps > _NAPS:
                self._wait(_ASLEEP, _DOZE_MS)

    def _take(self, head: int) -> bytes:
        self._order()
        start, end = max(self._tail, self._words[_BASE]) % _SIZE, head % _SIZE
        if start < end:
            data = bytes(self._ring[start:end])
        else:
            data = b"".join((self._ring[start:], self._ring[:end]))
        self._order()
        self._words[_TAIL] = self._tail = head
        self._order()
        self._little = len(data) < _BUSY
        if self._words[_WAITING]:
            self._words[_WAITING] = 0
            try:
                os.write(self._wake, b"\0")
            except OSError:
                # The writer is gone; what it has written is still here.
                return data
        return data

    def _wait(self, state: int, milliseconds: int) -> None:
        """Until the writer wakes us or goes, so long at most."""
        self._words[_STATE] = state
        self._order()
        # What was posted before the writer could see that is noticed here.
        there = self._words[_HEAD] - max(self._tail, self._words[_BASE])
        if there <= (_MUCH if state == _NAPPING else 0) and self._poll.poll(milliseconds):
            self._gone = not os.read(self._woken, _PAGE)
        self._words[_STATE] = _AWAKE


class Ring:
    """Both sides, to be parted by a fork: each process keeps one and closes the other's ends."""

    def __init__(self) -> None:
        self._memory = memoryview(mmap.mmap(-1, _PAGE + _SIZE))
        self.written_end, self._written = os.pipe()
        self._read, self.read_end = os.pipe()

    def reader(self) -> RingReader:
        """For the child; it closes every descriptor but `written_end` and `read_end`."""
        return RingReader(self._memory, self.written_end, self.read_end)

    def writer(self, on_broken: Callable[[], None]) -> RingWriter:
        """For the parent, after the fork."""
        os.close(self.written_end)
        os.close(self.read_end)
        return RingWriter(self._memory, self._written, self._read, on_broken)
