"""The way from the recorder to its scribe: a ring of shared memory, and a pipe each way.

Owns: what has been posted and is not in the ring yet. Rules: `post` never waits; small pieces are
gathered for a few milliseconds; what is in the ring is read to its end, however the writer's
process came to its own. Bytes go through memory, eight times as fast as through a pipe; the pipes
carry positions only: how far has been written, how far has been read (u64, counted from the
start), and, by their ends, that the other side is gone.

Made before the fork, which shares it. Used by `bridge.trace.recorder` and `bridge.trace.scribe`.
"""

import mmap
import os
import select
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator

import anyio

_SIZE = 1 << 22
_FLUSH_BYTES = 1 << 16
_FLUSH_SECONDS = 0.005
_SMALL = 1 << 14
_POSITION = struct.Struct("<Q")
_POSITIONS = 4096


class RingWriter:
    """The recorder's side. `on_broken` is called once, if the reader is gone."""

    def __init__(self, ring: memoryview, written: int, read: int, on_broken: Callable[[], None]):
        os.set_blocking(written, False)
        os.set_blocking(read, False)
        self._ring = ring
        self._written = written
        self._read = read
        self._on_broken = on_broken
        self._head = self._tail = 0
        self._fresh: list[bytes] = []
        self._fresh_size = 0
        self._queue: deque[memoryview] = deque()
        self._work = anyio.Event()
        self._broken = False
        self.queued = 0
        """Bytes posted and not in the ring yet."""

    def post(self, *parts: bytes) -> None:
        """Puts a frame, in parts, behind those before it."""
        if self._broken:
            return
        if not self._fresh:
            self._work.set()
        self._fresh += parts
        size = sum(map(len, parts))
        self._fresh_size += size
        self.queued += size
        if self._fresh_size >= _FLUSH_BYTES:
            self.flush()

    async def run(self) -> None:
        """Passes on what is posted, until cancelled or broken."""
        while not self._broken:
            await self._work.wait()
            self._work = anyio.Event()
            await anyio.sleep(_FLUSH_SECONDS)
            self.flush()
            while self._queue:
                await anyio.wait_readable(self._read)
                self.flush()

    def finish(self, within: float) -> None:
        """Passes on the rest, blocking for so many seconds at most, and closes."""
        deadline = time.monotonic() + within
        self.flush()
        while self._queue and (left := deadline - time.monotonic()) > 0:
            select.select([self._read], [], [], left)
            self.flush()
        self._broken = True
        os.close(self._written)
        os.close(self._read)

    def flush(self) -> None:
        """Moves what the ring takes."""
        self._queue.extend(map(memoryview, _gathered(self._fresh)))
        self._fresh, self._fresh_size = [], 0
        if self._broken or not self._queue:
            return
        try:
            self._look()
            while self._queue and (room := _SIZE - (self._head - self._tail)):
                self._move(room)
            os.write(self._written, _POSITION.pack(self._head))
        except BlockingIOError:
            return
        except OSError:
            self._broken = True
            self._queue.clear()
            self.queued = 0
            self._on_broken()

    def _look(self) -> None:
        """How far the scribe has read by now."""
        try:
            positions = os.read(self._read, _POSITIONS)
        except BlockingIOError:
            return
        if not positions:
            raise BrokenPipeError
        (self._tail,) = _POSITION.unpack(positions[-_POSITION.size :])

    def _move(self, room: int) -> None:
        part = self._queue[0]
        at = self._head % _SIZE
        size = min(len(part), room, _SIZE - at)
        self._ring[at : at + size] = part[:size]
        self._head += size
        self.queued -= size
        if size < len(part):
            self._queue[0] = part[size:]
        else:
            self._queue.popleft()


class RingReader:
    """The scribe's side."""

    def __init__(self, ring: memoryview, written: int, read: int) -> None:
        self._ring = ring
        self._written = written
        self._read = read
        self._tail = 0

    def receive(self) -> bytes:
        """What has been written since; blocks for it. b"" at the end."""
        while positions := os.read(self._written, _POSITIONS):
            (head,) = _POSITION.unpack(positions[-_POSITION.size :])
            if head > self._tail:
                return self._take(head)
        return b""

    def _take(self, head: int) -> bytes:
        start, end = self._tail % _SIZE, head % _SIZE
        if start < end:
            data = bytes(self._ring[start:end])
        else:
            data = b"".join((self._ring[start:], self._ring[:end]))
        self._tail = head
        try:
            os.write(self._read, _POSITION.pack(head))
        except OSError:
            # The writer is gone; what it has written is still here.
            return data
        return data


class Ring:
    """Both sides, to be parted by a fork: each process keeps one and closes the other's ends."""

    def __init__(self) -> None:
        self._memory = memoryview(mmap.mmap(-1, _SIZE))
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


def _gathered(parts: list[bytes]) -> Iterator[bytes]:
    """The same bytes in fewer pieces; large ones are not copied."""
    small: list[bytes] = []
    for part in parts:
        if len(part) < _SMALL:
            small.append(part)
            continue
        if small:
            yield b"".join(small)
            small = []
        yield part
    if small:
        yield b"".join(small)
