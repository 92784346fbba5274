"""The model proxy between a raw client and a raw upstream, for its own tests and its cases.

    async with standing(answer(b"...")) as stand:
        peer, prefix = await stand.dial()
        await peer.send(...)

The upstream keeps every request as the bytes that came, and answers with the bytes it was given.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from bridge.model.service import ModelProxy
from protocol_schemas.model import ModelOptions
from tests.raw import Peer, dial, upstream

_LAST_CHUNK = re.compile(rb"(?:^|\r\n)0\r\n(?:[^\r\n]+\r\n)*\r\n$")
Script = Callable[[Peer, "Stand"], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


class Stand:
    """A proxy with one route to one upstream."""

    def __init__(self, proxy: ModelProxy, url: str, upstream_port: int) -> None:
        self.proxy, self.url = proxy, url
        self.upstream_port = upstream_port
        address, _, segment = url.removeprefix("http://").partition("/")
        self.port = int(address.rpartition(":")[2])
        self.prefix = f"/{segment}".encode()
        self.requests: list[bytes] = []
        self.connections = 0
        self.gone = 0
        self.events: list[dict[str, Any]] = []
        self.taps: list[tuple[Any, ...]] = []
        self._told = anyio.Event()
        self.changed = anyio.Event()

    def on_event(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        self._told.set()

    async def departed(self, count: int) -> None:
        """Returns when so many of the upstream's connections have ended."""
        while self.gone < count:
            self.changed = anyio.Event()
            await self.changed.wait()

    async def event(self, number: int = 0) -> dict[str, Any]:
        """The event of that number, once it has been told."""
        while len(self.events) <= number:
            self._told = anyio.Event()
            await self._told.wait()
        return self.events[number]

    async def dial(self) -> Peer:
        """A raw connection to the proxy."""
        return await dial(self.port)

    def request(
        self, body: bytes = b"", path: bytes = b"/v1/chat/completions", *lines: bytes,
        method: bytes = b"POST",
    ) -> bytes:  # fmt: skip
        """A request's bytes, framed by length."""
        head = [
            b"%b %b%b HTTP/1.1" % (method, self.prefix, path),
            b"Host: 127.0.0.1:%d" % self.port,
        ]
        head += [b"Content-Type: application/json", *lines]
        return b"\r\n".join([*head, b"Content-Length: %d" % len(body), b"", body])

    async def exchange(self, data: bytes, size: int | None = None) -> bytes:
        """Sends a request on a connection of its own; the answer, to its end by length."""
        peer = await self.dial()
        await peer.send(data)
        head = await peer.until(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r")[0] or 0)
        body = await peer.count(length if size is None else size)
        await peer.close()
        return head + body

    @property
    def bodies(self) -> list[bytes]:
        """The bodies that reached the upstream."""
        return [request.partition(b"\r\n\r\n")[2] for request in self.requests]


async def read_request(peer: Peer) -> bytes:
    """One request, whole, as it came."""
    head = await peer.until(b"\r\n\r\n")
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        body = b""
        while not _LAST_CHUNK.search(body):
            body += await peer.until(b"\r\n\r\n")
        return head + body
    if b"content-length:" in lower:
        return head + await peer.count(int(lower.partition(b"content-length:")[2].split(b"\r")[0]))
    return head


def answer(*answers: bytes) -> Script:
    """A script that answers each request with the next of these; the last again and again."""

    async def script(peer: Peer, stand: Stand) -> None:
        while True:
            stand.requests.append(await read_request(peer))
            await peer.send(answers[min(len(stand.requests), len(answers)) - 1])

    return script


@asynccontextmanager
async def standing(
    script: Script, *, path: str = "", tap: bool = False, **options: Any
) -> AsyncGenerator[Stand]:
    """An upstream that runs the script, and a proxy before it with these options."""
    stands: list[Stand] = []

    async def run(peer: Peer) -> None:
        stand = stands[0]
        stand.connections += 1
        try:
            await script(peer, stand)
        finally:
            stand.gone += 1
            stand.changed.set()

    def told(event: dict[str, Any]) -> None:
        stands[0].on_event(event)

    def tapped(*record: Any) -> None:
        stands[0].taps.append(record)

    async with (
        upstream(run) as port,
        ModelProxy(told, tapped if tap else None) as proxy,
    ):
        url = proxy.mount(f"http://127.0.0.1:{port}{path}", options=ModelOptions(**options))
        stands.append(Stand(proxy, url, port))
        yield stands[0]
