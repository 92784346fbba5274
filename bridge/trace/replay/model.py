"""A recorded model server on loopback: each request gets what the same path got then, in turn.

Owns: the order of answers a path. Rules: status, headers and the pieces of the body are as they
were, a stream that broke off breaks off; a request beyond those recorded gets a 404 that says so.
Called by `bridge.trace.replay.command`.
"""

from collections import deque
from collections.abc import Callable

import anyio

from bridge.io import httpserver
from bridge.io.exchange import Exchange as Asked
from bridge.trace.traffic import Exchange, Traffic
from bridge.wire import codec

_FRAMING = frozenset(
    {b"content-length", b"transfer-encoding", b"connection", b"keep-alive", b"content-encoding"}
)
_BODY = 1 << 30


class Answers:
    """What is still to be answered, by method and path."""

    def __init__(self, traffic: Traffic, *, delays: bool) -> None:
        self._delays = delays
        self._left: dict[tuple[str, str], deque[Exchange]] = {}
        for exchange in traffic.exchanges:
            path = str(exchange.info.get("path") or exchange.url)
            key = exchange.method, path.partition("?")[0]
            self._left.setdefault(key, deque()).append(exchange)

    async def handle(self, asked: Asked) -> None:
        """Answers one request."""
        await asked.collect(_BODY)
        left = self._left.get((asked.method, asked.path))
        if not left:
            words = f"the recording has no further answer to {asked.method} {asked.path}"
            body = codec.encode({"error": {"message": words, "type": "bridge_error"}})
            await asked.respond(404, [(b"Content-Type", b"application/json")], body)
            return
        await self._play(asked, left.popleft())

    async def _play(self, asked: Asked, exchange: Exchange) -> None:
        if exchange.head is None:
            raise ConnectionError("the recorded upstream gave no answer")
        headers = [
            (name.encode("latin-1"), value.encode("latin-1"))
            for name, value in exchange.response_headers
        ]
        kept = [(name, value) for name, value in headers if name.lower() not in _FRAMING]
        await self._wait(exchange.start, exchange.head)
        await asked.start(exchange.status, kept, reason=exchange.reason.encode("latin-1"))
        before = exchange.head
        for t, piece in exchange.pieces:
            await self._wait(before, t)
            before = t
            await asked.send(piece)
        if exchange.info.get("outcome") in ("cut", "failed"):
            raise ConnectionError("the recorded upstream broke off here")
        await asked.finish()

    async def _wait(self, before: float, until: float) -> None:
        if self._delays:
            await anyio.sleep(max(0.0, until - before))


async def serve(answers: Answers, ready: Callable[[str], object]) -> None:
    """Serves until cancelled; `ready` gets the URL."""
    async with httpserver.listen() as server:
        ready(f"http://{server.host}:{server.port}")
        await server.serve(answers.handle)
