"""Raw HTTP peers for tests: bytes out, bytes in, nothing parsed behind the test's back."""

import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.abc

from bridge.io.httpclient import Call
from bridge.io.httppool import Pool
from bridge.io.httpserver import Handler, Server, listen

PATIENCE = 20
"""Seconds until a test that waits for what never comes is failed; no test measures time by it."""


class Peer:
    """One end of a TCP connection."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self.stream = stream
        self.seen = b""

    async def send(self, data: bytes) -> None:
        await self.stream.send(data)

    async def until(self, end: bytes) -> bytes:
        """What comes up to and with `end`; the rest is kept."""
        while end not in self.seen:
            self.seen += await self.stream.receive()
        position = self.seen.index(end) + len(end)
        found, self.seen = self.seen[:position], self.seen[position:]
        return found

    async def count(self, size: int) -> bytes:
        """Exactly so many bytes."""
        parts = [self.seen]
        got = len(self.seen)
        while got < size:
            parts.append(await self.stream.receive())
            got += len(parts[-1])
        data = b"".join(parts)
        self.seen = data[size:]
        return data[:size]

    async def rest(self) -> tuple[bytes, bool]:
        """Everything until the stream ends, and whether it ended cleanly (EOF, not a reset)."""
        try:
            while True:
                self.seen += await self.stream.receive()
        except anyio.EndOfStream:
            return self.seen, True
        except anyio.BrokenResourceError:
            return self.seen, False

    async def close(self) -> None:
        await self.stream.aclose()

    async def leave(self, how: str) -> None:
        """`close`, `reset`, or `half`: the sending side alone."""
        if how == "half":
            await self.stream.send_eof()
        else:
            await (self.close() if how == "close" else self.reset())

    async def reset(self) -> None:
        """Closes with a reset."""
        raw = self.stream.extra(anyio.abc.SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self.stream.aclose()


async def dial(port: int) -> Peer:
    return Peer(await anyio.connect_tcp("127.0.0.1", port))


@asynccontextmanager
async def serving(handler: Handler) -> AsyncGenerator[Server]:
    """Our server with a handler, on a free port."""
    with anyio.fail_after(PATIENCE):
        async with listen() as server, anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, handler)
            yield server
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def upstream(script: Callable[[Peer], Awaitable[None]], port: int = 0) -> AsyncGenerator[int]:
    """A raw server that runs the script for each connection and then closes it; its port."""

    async def run(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await script(Peer(stream))

    with anyio.fail_after(PATIENCE):
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port)
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, run)
            yield listener.extra(anyio.abc.SocketAttribute.local_port)
            tasks.cancel_scope.cancel()


async def twice(pool: Pool, target: bytes, body: bytes, host: bytes = b"a") -> list[bytes]:
    """Two requests, one after the other; what they were answered. Closes the pool."""
    found: list[bytes] = []
    headers = [(b"Host", host), (b"Content-Length", b"%d" % len(body))]
    try:
        for _ in range(2):
            async with Call(pool, "POST", target, headers, [body]) as call:
                await call.head()
                while (piece := await call.receive()) is not None:
                    found.append(piece.data)
    finally:
        pool.close()
    return found
