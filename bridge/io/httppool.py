"""The keep-alive connections to one upstream: `Origin` names it, `Pool` keeps them.

Rules: at most so many in use at a time; an idle one is looked at before it is used (closed,
readable or too old: not used); what an error says holds no secret. Used by httpclient; owned by the
model proxy, one pool a distinct upstream, and by the MCP proxy, one a server.
"""

import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import anyio

from bridge.io.forward import Forward
from bridge.io.sockets import Part, connect

CONNECT_SECONDS = 10.0
_LIMIT, _IDLE, _IDLE_SECONDS = 512, 64, 60.0
BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError)


class UpstreamError(Exception):
    """The upstream could not be reached, or what it says is no HTTP. The text holds no secret."""


class UpstreamTimeout(UpstreamError):
    """The upstream did not answer in time."""


class Cut(UpstreamError):
    """The response broke off before its end."""


class Origin(NamedTuple):
    """Where requests go: scheme `http` or `https`, host without brackets, port."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """The Host header's value: the scheme's own port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.scheme == "https" else 80
        return host if self.port == usual else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


class Wire(Protocol):
    """A connection: `Socket`, or `TlsSocket`."""

    async def receive(self) -> bytes:
        """The next bytes; `b""` at the end."""
        ...

    async def send(self, *parts: Part) -> None:
        """Sends all of it."""
        ...

    def write(self, *parts: Part) -> int:
        """Writes what goes out at once; how many bytes."""
        ...

    def untouched(self) -> bool:
        """Whether the connection is open and nothing has come on it."""
        ...

    def close(self) -> None:
        """Closes the connection."""
        ...


class Pool:
    """Keep-alive connections to one origin, at most `limit` in use at a time (more wait).

    `connect_seconds` bounds connecting, TLS included; after `idle_seconds` a connection is not used
    again (the shorter, the rarer a request is written into one that the upstream is closing).
    `forward`: the proxy on the way there.
    """

    def __init__(
        self,
        origin: Origin,
        *,
        limit: int = _LIMIT,
        connect_seconds: float = CONNECT_SECONDS,
        idle_seconds: float = _IDLE_SECONDS,
        forward: Forward | None = None,
    ) -> None:
        self.origin, self.forward = origin, forward
        self._connect_seconds, self._idle_seconds = connect_seconds, idle_seconds
        self._idle: deque[tuple[float, Wire]] = deque()
        self._room = anyio.Semaphore(limit)
        self._closed = False

    def try_enter(self) -> bool:
        """Whether one more connection may be used now; `leave` ends that."""
        try:
            self._room.acquire_nowait()
        except anyio.WouldBlock:
            return False
        return True

    async def enter(self) -> None:
        """Waits until one more connection may be used."""
        await self._room.acquire()

    def reuse(self, parts: Sequence[Part]) -> tuple[Wire, int] | None:
        """An idle connection, and how many bytes of the parts it took at once; None without one.

        A connection that broke before it took a single byte is passed over.
        """
        while self._idle:
            since, wire = self._idle.pop()
            if since >= time.monotonic() - self._idle_seconds and wire.untouched():
                try:
                    return wire, wire.write(*parts)
                except BROKEN:
                    pass
            wire.close()
        return None

    async def open(self, parts: Sequence[Part]) -> tuple[Wire, int]:
        """A new connection, and how many bytes of the parts it took. Raises UpstreamError."""
        wire = await self._connect()
        try:
            return wire, wire.write(*parts)
        except BROKEN as error:
            wire.close()
            raise UpstreamError(f"the connection to {self.origin} broke: {error}") from None

    async def _connect(self) -> Wire:
        scheme, host, port = self.origin
        there = str(self.origin)
        if self.forward is not None:
            there += f" through {self.forward}"
        try:
            with anyio.fail_after(self._connect_seconds):
                if self.forward is None:
                    sock = await connect(host, port)
                else:
                    sock = await self.forward.connect(self.origin)
                if scheme == "http":
                    return sock
                # ssl costs milliseconds and megabytes, and most upstreams are on the loopback.
                from bridge.io import tls

                return await tls.wrap(sock, host)
        except TimeoutError:
            raise UpstreamTimeout(
                f"no connection to {there} in {self._connect_seconds:g} s"
            ) from None
        except (OSError, anyio.BrokenResourceError, anyio.EndOfStream) as error:
            words = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise UpstreamError(f"cannot connect to {there}: {words}") from None

    def leave(self, wire: Wire | None, *, reuse: bool) -> None:
        """Gives a connection back; it is closed unless it can be used again."""
        self._room.release()
        if wire is None:
            return
        now = time.monotonic()
        if reuse and not self._closed:
            self._idle.append((now, wire))
        else:
            wire.close()
        while self._idle and (
            len(self._idle) > _IDLE or self._idle[0][0] < now - self._idle_seconds
        ):
            self._idle.popleft()[1].close()

    def close(self) -> None:
        """Closes what is idle now, and what is in use when it is given back."""
        self._closed = True
        while self._idle:
            self._idle.pop()[1].close()
