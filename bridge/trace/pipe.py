"""The recorder's end of the pipe to its scribe.

Owns: what has been posted and is not in the pipe yet. Rules: `post` never waits; small pieces are
gathered for a few milliseconds and go out in one write; it may be opened before the loop runs and
finished after. Used by `bridge.trace.recorder` alone.
"""

import fcntl
import os
import select
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

import anyio

_SIZE = 1 << 20
_FLUSH_BYTES = 1 << 16
_FLUSH_SECONDS = 0.005
_SMALL = 1 << 14
_IOV = 64


class ScribePipe:
    """The write end; owns the descriptor. `on_broken` is called once, if the reader is gone."""

    def __init__(self, fd: int, on_broken: Callable[[], None]) -> None:
        os.set_blocking(fd, False)
        with suppress(OSError, AttributeError):
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _SIZE)
        self._fd = fd
        self._on_broken = on_broken
        self._fresh: list[bytes] = []
        self._fresh_size = 0
        self._queue: deque[memoryview] = deque()
        self._work = anyio.Event()
        self._broken = False
        self.queued = 0
        """Bytes posted that the pipe has not taken."""

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
            self.write()

    async def run(self) -> None:
        """Writes what is posted, until cancelled or broken."""
        while not self._broken:
            await self._work.wait()
            self._work = anyio.Event()
            await anyio.sleep(_FLUSH_SECONDS)
            self.write()
            while self._queue:
                await anyio.wait_writable(self._fd)
                self.write()

    def finish(self, within: float) -> bool:
        """Writes the rest, blocking for so many seconds at most, and closes; whether all went."""
        deadline = time.monotonic() + within
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        self.write()
        while self._queue and (left := deadline - time.monotonic()) > 0:
            poll.poll(left * 1000)
            self.write()
        done = not self._queue and not self._broken
        os.close(self._fd)
        self._broken = True
        return done

    def write(self) -> None:
        """Writes what the pipe takes at once."""
        queue = self._queue
        queue.extend(map(memoryview, _gathered(self._fresh)))
        self._fresh, self._fresh_size = [], 0
        try:
            while queue:
                done = os.writev(self._fd, [queue[i] for i in range(min(len(queue), _IOV))])
                self.queued -= done
                while done:
                    head = queue[0]
                    if done < len(head):
                        queue[0] = head[done:]
                        break
                    done -= len(head)
                    queue.popleft()
        except BlockingIOError:
            return
        except OSError:
            self._broken = True
            queue.clear()
            self.queued = 0
            self._on_broken()


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
