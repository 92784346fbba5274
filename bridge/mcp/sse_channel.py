"""The transport before streamable HTTP (2024-11-05) as a channel: one stream in, POSTs out.

Rule: the address to post to, which the server names, must be of its own origin. Called by
`bridge.mcp.server` for servers of type `sse`.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from bridge.mcp.channel import Fault, Outgoing, Sink, nobody
from bridge.mcp.messages import Answer
from bridge.mcp.origin import Broken, Origin, Reply, joined
from bridge.mcp.single_stream import SingleStream
from bridge.rules import retry
from bridge.wire.sse import Event, Parser, SSEError

_EVENTS = "text/event-stream"
_SHOWN = 300


@asynccontextmanager
async def connected(
    origin: Origin, ceiling: int, sink: Sink, tasks: TaskGroup
) -> AsyncGenerator["SseChannel"]:
    """A session: the stream is open and has named the address to post to. Raises Fault."""
    reply = await _stream(origin, tasks)
    try:
        channel = SseChannel(origin, reply, ceiling, sink, tasks)
        await channel.find_address()
        yield channel
    finally:
        # The end of its stream is the end of the session: there is no DELETE here.
        await reply.close()


async def _stream(origin: Origin, tasks: TaskGroup) -> Reply:
    try:
        reply = await origin.open("GET", [("Accept", _EVENTS)], b"", tasks=tasks)
    except Broken as error:
        raise Fault(_kind(error), str(error)) from None
    kind = reply.kind
    if reply.status == 200 and kind == _EVENTS:
        return reply
    await reply.close()
    if reply.status == 200:
        raise Fault("rejected", f"the server answers GET with {kind or 'no content'}, not a stream")
    raise Fault(
        retry.from_status(reply.status, written=False, in_session=False),
        f"HTTP {reply.status} for the stream",
        retry_after=reply.retry_after,
        status=reply.status,
    )


def _kind(error: Broken) -> retry.Kind:
    return "connect" if error.connecting else "rejected" if error.final else "opening"


class SseChannel(SingleStream):
    """One stream and the address beside it."""

    def __init__(
        self, origin: Origin, reply: Reply, ceiling: int, sink: Sink, tasks: TaskGroup
    ) -> None:
        super().__init__(sink)
        self._origin = origin
        self._reply = reply
        self._ceiling = ceiling
        self._tasks = tasks
        self._parser = Parser(ceiling)
        self._events: list[Event] = []
        self._address = ""
        self._refused: Fault | None = None

    async def find_address(self) -> None:
        """Reads up to the event that names it; raises Fault."""
        while (event := await self._next(nobody())) is not None:
            if event.name == "endpoint":
                try:
                    self._address = joined(self._origin.url, event.text)
                except Broken as error:
                    raise Fault(_kind(error), str(error)) from None
                return
        raise Fault("opening", "the stream ended before it named the address to post to")

    async def exchange(self, request: Outgoing) -> Answer:
        self._refused = None
        with anyio.CancelScope() as waiting:
            self._tasks.start_soon(self._post_beside, request, waiting)
            return await self.answer(request)
        raise self._refused or request.fault("the request was not accepted")

    async def next_data(self, request: Outgoing) -> bytes | None:
        while (event := await self._next(request)) is not None:
            if event.name == "message":
                return event.data
        return None

    async def died(self, request: Outgoing) -> Fault:
        return request.fault("the stream ended before the answer came")

    async def _post_beside(self, request: Outgoing, waiting: anyio.CancelScope) -> None:
        """The answer may come on the stream before the POST is accepted: both go on at once."""

        def written() -> None:
            request.written = True

        try:
            await self._post(request.body, written, counted=request.counted)
        except Fault as fault:
            if fault.failure.kind == "opening":
                fault = request.fault(str(fault))
            # Nothing will come for it.
            self._refused = fault
            waiting.cancel()

    async def send(self, message: bytes) -> None:
        await self._post(message, lambda: None, counted=False)

    async def _post(self, body: bytes, written: Callable[[], None], *, counted: bool) -> None:
        headers = [("Content-Type", "application/json")]
        try:
            reply = await self._origin.open(
                "POST", headers, body, tasks=self._tasks, written=written, url=self._address
            )
        except Broken as error:
            raise Fault(_kind(error), str(error)) from None
        try:
            if reply.status >= 300:
                text = (await reply.receive())[:_SHOWN].decode(errors="replace")
                raise Fault(
                    retry.from_status(reply.status, written=counted, in_session=True),
                    f"HTTP {reply.status}: {text}",
                    retry_after=reply.retry_after,
                    status=reply.status,
                )
            while await reply.receive():
                pass
        except Broken:
            # It was accepted; what follows the head says nothing.
            return
        finally:
            await reply.close()

    async def _next(self, request: Outgoing) -> Event | None:
        while not self._events:
            try:
                data = await self._reply.receive()
                if not data:
                    return self._unended()
                self._events = self._parser.feed(data)[::-1]
            except Broken:
                return self._unended()
            except SSEError:
                raise request.too_large(self._ceiling) from None
        return self._events.pop()

    def _unended(self) -> Event | None:
        """The stream's last event, which may be whole and only lack its end."""
        rest, self._parser = self._parser.rest, Parser(self._ceiling)
        return Event("message", rest) if rest else None
