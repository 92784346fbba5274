"""A channel all of whose messages come in one stream: stdio's lines, the events of old SSE.

Rule: the reader is the task that waits for an answer, so that nothing overtakes anything; what
belongs to no request comes between the answers. Base of `stdio_channel` and `sse_channel`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress

from bridge.log import log
from bridge.mcp import messages
from bridge.mcp.channel import Fault, Outgoing, Sink, nobody
from bridge.mcp.messages import Answer
from bridge.wire import jsonrpc
from bridge.wire.jsonrpc import Malformed, Notification, Request, Response


class SingleStream(ABC):
    """One exchange at a time. `sink` takes what is no answer."""

    cancels_by_closing = False
    has_own_stream = False
    version: str | None = None

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        # The last one first, so that taking one is cheap.
        self._messages: list[Request | Notification | Response] = []

    @abstractmethod
    async def next_data(self, request: Outgoing) -> bytes | None:
        """What came next, a message or a batch of them; None at the end. Raises Fault.

        `request` is what is waited for, for the words.
        """

    @abstractmethod
    async def died(self, request: Outgoing) -> Fault:
        """What the end of the stream means."""

    async def read(self, request: Outgoing) -> Request | Notification | Response | None:
        """The next message, None at the end; noise is skipped. Raises Fault."""
        while not self._messages:
            data = await self.next_data(request)
            if data is None:
                return None
            for part in messages.sent(data)[::-1] if data.strip() else ():
                message = jsonrpc.parse(part)
                if isinstance(message, Malformed):
                    log.debug("noise from an MCP server: %s", message.reason)
                else:
                    self._messages.append(message)
        return self._messages.pop()

    async def answer(self, request: Outgoing) -> Answer:
        """Reads up to the answer to the request; raises Fault."""
        while (message := await self.read(request)) is not None:
            if not isinstance(message, Response):
                await self._sink(message)
            elif request.owns(message):
                return request.answer_in(message)
        raise await self.died(request)

    async def listen(self, ready: Callable[[], None]) -> None:
        ready()
        with suppress(Fault):
            await self.answer(nobody())

    async def end(self) -> None:
        # Leaving the channel's context closes what it reads from, and with that the session.
        return
