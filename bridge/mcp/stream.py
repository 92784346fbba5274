"""The response to a POST: plain JSON where the answer is all there is, else a stream of events.

Rules: what is fast stays plain; whatever has to be said before the answer, and any wait that is
long, turns the response into a stream, which is kept alive by comments so that no client's or
proxy's idle timeout ends a long call. Used by `http_front`.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from bridge.io.exchange import Exchange
from bridge.wire import sse
from bridge.wire.http_head import Headers

_EVENTS: Headers = [
    (b"Content-Type", b"text/event-stream"),
    (b"Cache-Control", b"no-cache, no-transform"),
    (b"X-Accel-Buffering", b"no"),
]
JSON = (b"Content-Type", b"application/json")
_QUIET = 5.0
_KEEP_ALIVE = 15.0
_COMMENT = b": still here\n\n"


class Stream:
    """One exchange's response. `streams`: whether the caller takes a stream of events."""

    def __init__(self, exchange: Exchange, *, streams: bool) -> None:
        self.streams = streams
        self._exchange = exchange
        self._lock = anyio.Lock()
        self._open = False

    async def send(self, message: bytes) -> None:
        """Something that comes before the answer; dropped for a caller who takes no stream."""
        if self.streams:
            await self._write(sse.encode(message))

    async def open(self) -> None:
        """Starts the stream with nothing in it yet."""
        await self._write(b"")

    async def _write(self, data: bytes) -> None:
        async with self._lock:
            if self._open:
                await self._exchange.send(data)
            else:
                self._open = True
                await self._exchange.start(200, _EVENTS, first=data)

    async def finish(self, answer: bytes, status: int = 200) -> None:
        """The answer, which ends the response. `status` is that of a plain one."""
        async with self._lock:
            if self._open:
                await self._exchange.send(sse.encode(answer))
                await self._exchange.finish()
            else:
                self._open = True
                await self._exchange.respond(status, [JSON], answer)

    async def end(self) -> None:
        """Ends a stream that has no answer."""
        async with self._lock:
            await self._exchange.finish()

    @asynccontextmanager
    async def kept_alive(self) -> AsyncGenerator[None]:
        """Looks after the response while its answer is awaited."""
        if not self.streams:
            yield
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_alive)
            yield
            tasks.cancel_scope.cancel()

    async def _keep_alive(self) -> None:
        await anyio.sleep(_QUIET)
        while True:
            await self._write(_COMMENT)
            await anyio.sleep(_KEEP_ALIVE)
