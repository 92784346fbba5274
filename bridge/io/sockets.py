"""TCP sockets on anyio: `Socket`, `connect`, `bind`, alike on asyncio, uvloop and trio.

Rule: one reader and one writer a socket. Writing tries at once and waits only where the kernel is
full; a stream's clean end (`b""`) and its breaking (`BrokenResourceError`) are never confused.
Used by httpserver and httpclient. anyio's own SocketStream hides what a proxy has to see: whether
an idle connection is still good, and whether the peer left while nobody reads.
"""

import contextlib
import errno
import ipaddress
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel

from bridge.errors import UsageError

CHUNK = 1 << 16
_LARGEST = 1 << 20
_IOV = 512
_STAGGER = 0.25
_RESET = struct.pack("ii", 1, 0)
_MENDS = {
    errno.EADDRINUSE: "; give another port, or 0 for any free one",
    errno.EACCES: "; give a port from 1024 on",
    errno.EADDRNOTAVAIL: "; give an address of this machine, such as 127.0.0.1",
}

Part = bytes | bytearray | memoryview


def after(parts: Sequence[Part], done: int) -> list[Part]:
    """What is left of the parts without their first bytes."""
    if done == (len(parts[0]) if len(parts) == 1 else sum(map(len, parts))):
        return []
    left: list[Part] = []
    for part in parts:
        if done >= len(part):
            done -= len(part)
        else:
            left.append(memoryview(part)[done:] if done else part)
            done = 0
    return left


class Socket:
    """A connected stream socket. Owns and closes it."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self._size = CHUNK
        self._misses = self._skip = 0

    async def receive(self) -> bytes:
        """What is there, a megabyte at most; `b""` at the end. Raises BrokenResourceError."""
        # Where much is going on, the data is there once the other tasks have run; waiting for it
        # costs a registration with the loop. A try that fails is not made again so soon.
        if self._skip:
            self._skip -= 1
        else:
            await anyio.lowlevel.checkpoint()
            if (data := self.read()) is not None:
                self._misses = 0
                return data
            self._misses = min(self._misses + 1, 4)
            self._skip = (1 << self._misses) - 2
        while True:
            try:
                await anyio.wait_readable(self._sock.fileno())
            except (ValueError, OSError) as error:
                raise anyio.ClosedResourceError from error
            if (data := self.read()) is not None:
                return data

    def read(self) -> bytes | None:
        """What is there now, None if nothing is. Raises BrokenResourceError."""
        try:
            data = self._sock.recv(self._size)
        except BlockingIOError:
            return None
        except OSError as error:
            raise broken(error) from None
        if len(data) == self._size:
            self._size = min(self._size * 2, _LARGEST)
        elif self._size > CHUNK:
            self._size //= 2
        return data

    def write(self, *parts: Part) -> int:
        """Writes what the kernel takes now; how many bytes. Raises BrokenResourceError."""
        try:
            if len(parts) == 1:
                return self._sock.send(parts[0])
            return self._sock.sendmsg(parts[:_IOV])
        except BlockingIOError:
            return 0
        except OSError as error:
            raise broken(error) from None

    async def send(self, *parts: Part) -> None:
        """Writes all of it. Cancelled, it may have written a part: the socket is of no use then."""
        done = self.write(*parts)
        for part in after(parts, done):
            await self._send_all(memoryview(part))

    async def _send_all(self, data: memoryview) -> None:
        while data:
            try:
                await anyio.wait_writable(self._sock.fileno())
            except (ValueError, OSError) as error:
                raise anyio.ClosedResourceError from error
            data = data[self.write(data) :]

    def untouched(self) -> bool:
        """Whether the idle connection is open and nothing has come on it."""
        try:
            self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def fileno(self) -> int:
        """The descriptor, -1 once closed."""
        return self._sock.fileno()

    def end(self) -> None:
        """Says that nothing more will be written (shuts the sending side)."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Closes the socket; whoever waits on it gets ClosedResourceError."""
        if self._sock.fileno() >= 0:
            anyio.notify_closing(self._sock.fileno())
            self._sock.close()

    def reset(self) -> None:
        """Closes the socket so that the peer sees it broken, not ended."""
        with contextlib.suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.close()


def broken(error: OSError) -> anyio.BrokenResourceError:
    """The error of a connection that broke, with the system's words."""
    return anyio.BrokenResourceError(error.strerror or str(error))


async def connect(host: str, port: int) -> Socket:
    """Connects to the first address that answers, the next one starting a quarter second later.

    Raises OSError.
    """
    addresses = await _addresses(host, port)
    if len(addresses) == 1:
        return await _connect_one(*addresses[0])
    found: list[Socket] = []
    errors: list[OSError] = []
    async with anyio.create_task_group() as tasks:

        async def attempt(family: int, address: Any, ended: anyio.Event) -> None:
            try:
                connected = await _connect_one(family, address)
            except OSError as error:
                errors.append(error)
                ended.set()
                return
            if found:
                connected.close()
                return
            found.append(connected)
            tasks.cancel_scope.cancel()

        for family, address in addresses:
            ended = anyio.Event()
            tasks.start_soon(attempt, family, address, ended)
            with anyio.move_on_after(_STAGGER):
                await ended.wait()
    if found:
        return found[0]
    raise errors[0]


async def _addresses(host: str, port: int) -> list[tuple[int, Any]]:
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        if not found:
            raise OSError(errno.ENOENT, f"{host} has no address") from None
        return list(dict.fromkeys((int(item[0]), item[4]) for item in found))
    return [(socket.AF_INET if version == 4 else socket.AF_INET6, (host, port))]


async def _connect_one(family: int, address: Any) -> Socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        try:
            sock.connect(address)
        except BlockingIOError:
            await anyio.wait_writable(sock.fileno())
            if code := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(code, os.strerror(code)) from None
        return Socket(sock)
    except BaseException:
        anyio.notify_closing(sock.fileno())
        sock.close()
        raise


def bind(host: str, port: int, *, allow_remote: bool = False) -> socket.socket:
    """A listening socket, port 0 for any free one. Off the loopback only if allowed.

    Raises UsageError where the address is not allowed, not known or in use.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        if not allow_remote and not ipaddress.ip_address(address[0]).is_loopback:
            raise UsageError(
                f"{host} is not a loopback address: listen on 127.0.0.1, or give --allow-remote"
            )
        sock = socket.create_server(address[:2], family=family, backlog=1024)
    except OSError as error:
        words, mend = error.strerror or str(error), ""
        if not isinstance(error, socket.gaierror) and error.errno is not None:
            # create_server puts words of its own behind the system's, which have the address again.
            words, mend = os.strerror(error.errno), _MENDS.get(error.errno, "")
        raise UsageError(f"cannot listen on {host}:{port}: {words}{mend}") from None
    sock.setblocking(False)
    return sock
