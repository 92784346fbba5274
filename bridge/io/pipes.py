"""File descriptors as streams: `FdReader` and `FdWriter`, alike on asyncio, uvloop and trio.

Rule: one owner a direction. Nothing but the `FdWriter` writes to its descriptor, and a frame once
posted goes out whole: what is left of it lives in the writer, not in a task that can be cancelled
(a cancelled `send` tears a frame on trio). Used for stdio and for children's pipes.
"""

import os
import select
import stat
from collections import deque
from collections.abc import Callable

import anyio
import anyio.lowlevel

CHUNK = 1 << 16
"""Bytes read at once: what a pipe holds. From 128 KiB on malloc may ask the system for the memory
of each read, and give it back: 10 µs for a message of which the read itself takes half a one."""
_IOV = 64
_COPIED = 1 << 16


def reopen(fd: int, flags: int) -> int:
    """A descriptor of our own for an inherited pipe or terminal, not blocking; fd is left as it is.

    O_NONBLOCK belongs to the open file description, which the parent may share; Linux gives a
    second one through /proc. Elsewhere (sockets, pipes on macOS) the shared one has to do.
    """
    if not stat.S_ISSOCK(os.fstat(fd).st_mode) and pollable(fd):
        for path in (f"/proc/self/fd/{fd}", os.ttyname(fd) if os.isatty(fd) else ""):
            try:
                return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
            except OSError:
                continue
    copy = os.dup(fd)
    if pollable(copy) and not os.isatty(copy):
        os.set_blocking(copy, False)
    return copy


def pollable(fd: int) -> bool:
    """Whether readiness can be waited for: pipes, sockets and terminals, not files."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (stat.S_ISCHR(mode) and os.isatty(fd))


def _own(fd: int) -> bool:
    """Makes a pipe or socket non-blocking; tells whether fd is pollable. A terminal is left as it
    is: its description is the user's shell's too. `reopen` gives one that does not block."""
    able = pollable(fd)
    if able and not os.isatty(fd):
        os.set_blocking(fd, False)
    return able


class FdReader:
    """The read end of a pipe, a socket, a terminal or a file. Owns and closes the descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pollable = _own(fd)
        # A terminal may still be a blocking one: read only what is known to be there.
        self._wait_first = self._pollable and os.get_blocking(fd)
        self._streak = False
        self.waiting = False
        """Whether a `receive` is under way and has found nothing to read."""

    async def receive(self, size: int = CHUNK) -> bytes:
        """What is there, at most `size` bytes; `b""` at the end of the stream or once closed."""
        if not self._pollable:
            return await anyio.to_thread.run_sync(self._read, size) or b""
        if self._streak:
            # A stream that is always readable must not keep the others from their turn. Before the
            # read: what has been read must not be lost to a cancellation, nor be overtaken.
            await anyio.lowlevel.checkpoint()
        waited = False
        while self._fd >= 0:
            if (waited or not self._wait_first) and (data := self._read(size)) is not None:
                self._streak = not waited
                return data
            self.waiting = waited = True
            try:
                await anyio.wait_readable(self._fd)
            except (anyio.ClosedResourceError, ValueError, OSError):
                return b""
            finally:
                self.waiting = False
        return b""

    def _read(self, size: int) -> bytes | None:
        """One read; None if there is nothing yet."""
        try:
            return os.read(self._fd, size)
        except BlockingIOError:
            return None
        except OSError:
            # A reset, or the other side of a terminal is gone: no more will come.
            return b""

    def available(self) -> bytes:
        """What can be read without waiting, at most CHUNK bytes; for use beside a `receive`."""
        if self._fd < 0 or not self._pollable or self._wait_first:
            return b""
        return self._read(CHUNK) or b""

    def idle(self) -> bool:
        """Whether a `receive` is waiting and there is nothing for it (or the stream is closed)."""
        if self._fd < 0:
            return True
        if not self.waiting:
            return False
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """Closes the descriptor; a waiting `receive` returns `b""`."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            if self._pollable:
                anyio.notify_closing(fd)
            os.close(fd)


def _small(parts: tuple[bytes | bytearray | memoryview, ...]) -> bool:
    """Whether to copy frames of several parts into one is cheaper than to write them apart."""
    return sum(map(len, parts)) <= _COPIED


class FdWriter:
    """The write end: `post` never waits, `run` carries on where the descriptor was full.

    A reader that is gone turns the writer `broken`: what is posted then is dropped, `on_broken`
    is called once. Owns and closes the descriptor.
    """

    def __init__(self, fd: int, *, on_broken: Callable[[], None] | None = None) -> None:
        self._fd = fd
        self._pollable = _own(fd)
        self._queue: deque[memoryview] = deque()
        self.on_broken = on_broken
        self._work = anyio.Event()
        self._room = anyio.Event()
        self.closed = False
        self.broken = False
        self.queued = 0
        """Bytes posted and not yet taken by the descriptor."""

    def post(self, *parts: bytes | bytearray | memoryview) -> None:
        """Puts one frame (in parts) behind those before it and writes what the descriptor takes."""
        if self.broken or self.closed:
            return
        if not self._queue:
            # Nearly always one small frame and an empty pipe: no queue is needed.
            data = parts[0] if len(parts) == 1 else b"".join(parts) if _small(parts) else b""
            if data:
                try:
                    done = os.write(self._fd, data)
                except BlockingIOError:
                    done = 0
                except OSError:
                    self._break()
                    return
                if done == len(data):
                    return
                parts = (memoryview(data)[done:],)
        idle = not self._queue
        for part in parts:
            if part:
                self._queue.append(memoryview(part))
                self.queued += len(part)
        if idle and self._queue:
            self._write()
            if self._queue:
                self._work.set()

    def _write(self) -> None:
        """Writes until the queue is empty or the descriptor is full."""
        queue = self._queue
        try:
            while queue:
                if len(queue) == 1:
                    done = os.write(self._fd, queue[0])
                else:
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
            pass
        except OSError:
            self._break()

    def _break(self) -> None:
        if self.broken:
            return
        self.broken = True
        self._queue.clear()
        self.queued = 0
        self._work.set()
        self._room.set()
        if self.on_broken is not None:
            self.on_broken()

    async def run(self) -> None:
        """Writes what `post` could not, until the writer is closed and drained, or broken."""
        while not self.broken:
            if not self._queue:
                if self.closed:
                    return
                self._room.set()
                await self._work.wait()
                self._work = anyio.Event()
                continue
            if self._pollable:
                try:
                    await anyio.wait_writable(self._fd)
                except (anyio.ClosedResourceError, ValueError, OSError):
                    self._break()
                    return
            self._write()

    async def watch(self) -> None:
        """Returns when the reader has gone, also while nothing is being written (Linux: an error
        on a pipe, end of file on a socket). Calls `on_broken` as a failed write does."""
        while self._pollable and not self.broken and self._fd >= 0:
            try:
                await anyio.wait_readable(self._fd)
            except (anyio.ClosedResourceError, anyio.BusyResourceError, ValueError, OSError):
                return
            if self._fd < 0 or not self._peer_gone():
                return
            self._break()

    def _peer_gone(self) -> bool:
        poll = select.poll()
        poll.register(self._fd, 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))

    async def drained(self) -> None:
        """Returns when nothing is queued, or the writer is broken. Needs `run` beside it."""
        while self._queue and not self.broken:
            if self._room.is_set():
                self._room = anyio.Event()
            await self._room.wait()

    def close(self) -> None:
        """Closes the descriptor and forgets what is queued; await `drained` first to keep it."""
        self.closed = True
        self._queue.clear()
        self.queued = 0
        self._work.set()
        self._room.set()
        fd, self._fd = self._fd, -1
        if fd >= 0:
            if self._pollable:
                anyio.notify_closing(fd)
            os.close(fd)
