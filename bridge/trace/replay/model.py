"""A recorded model server on loopback: each request gets what the same path got then, in turn.

Owns: the order of answers a path. Rules: status, headers and the pieces of the body are as they
were; an answer that broke off breaks off there, one that never came is none, one whose end was not
recorded has none. Requests that the proxy refused never came to its upstream. A request beyond
those recorded gets a 404 that says so. What was not recorded is not made up: a 500 says so.
Called by `bridge.trace.replay.command`.
"""

from collections import deque
from collections.abc import Callable

import anyio

from bridge.io import httpserver
from bridge.io.exchange import Exchange as Asked
from bridge.trace.traffic import Exchange, Traffic
from bridge.wire import codec

_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"connection", b"keep-alive"})
_BODY = 1 << 30


class Answers:
    """What is still to be answered, by method and path."""

    def __init__(self, traffic: Traffic, *, delays: bool) -> None:
        self._delays = delays
        self._left: dict[tuple[str, str], deque[Exchange]] = {}
        for exchange in traffic.exchanges:
            if exchange.info.get("outcome") == "refused":
                continue
            path = str(exchange.info.get("path") or exchange.url)
            key = exchange.method, path.partition("?")[0]
            self._left.setdefault(key, deque()).append(exchange)

    async def handle(self, asked: Asked) -> None:
        """Answers one request."""
        await asked.collect(_BODY)
        left = self._left.get((asked.method, asked.path))
        if not left:
            words = f"the recording has no further answer to {asked.method} {asked.path}"
            await _refuse(asked, 404, words)
        else:
            await self._play(asked, left.popleft())

    async def _play(self, asked: Asked, exchange: Exchange) -> None:
        if exchange.head is None:
            # As if it were answered: the connection ends without a word.
            asked.status = 0
            return
        if exchange.omitted:
            words = f"the answer to {asked.method} {asked.path} was not recorded as a whole"
            await _refuse(asked, 500, f"{words}: {exchange.partial}")
            return
        whole = exchange.info.get("outcome") == "complete"
        await self._wait(exchange.start, exchange.head)
        reason = exchange.reason.encode("latin-1", errors="replace")
        await asked.start(exchange.status, _headers(exchange, whole=whole), reason=reason)
        before = exchange.head
        for t, piece in exchange.pieces:
            await self._wait(before, t)
            before = t
            await asked.send(piece)
        if whole:
            await asked.finish()

    async def _wait(self, before: float, until: float) -> None:
        if self._delays:
            await anyio.sleep(max(0.0, until - before))


def _headers(exchange: Exchange, *, whole: bool) -> list[tuple[bytes, bytes]]:
    """The recorded headers, without those that are not true of the bytes as they were recorded."""
    headers = [
        (name.encode("latin-1", errors="replace"), value.encode("latin-1", errors="replace"))
        for name, value in exchange.response_headers
    ]
    untrue = _FRAMING | {b"content-encoding"} if exchange.decoded else _FRAMING
    kept = [(name, value) for name, value in headers if name.lower() not in untrue]
    length = next((value for name, value in headers if name.lower() == b"content-length"), b"")
    if not length.isdigit() or exchange.decoded:
        return kept
    size = sum(len(piece) for _, piece in exchange.pieces)
    bodiless = exchange.method == "HEAD" or exchange.status in (204, 304)
    right = bodiless or (size == int(length) if whole else size < int(length))
    return [*kept, (b"Content-Length", length)] if right else kept


async def _refuse(asked: Asked, status: int, words: str) -> None:
    body = codec.encode({"error": {"message": words, "type": "bridge_error"}})
    await asked.respond(status, [(b"Content-Type", b"application/json")], body)


async def serve(answers: Answers, ready: Callable[[str], object]) -> None:
    """Serves until cancelled; `ready` gets the URL."""
    async with httpserver.listen() as server:
        ready(f"http://{server.host}:{server.port}")
        await server.serve(answers.handle)
