"""What a session speaks over: `Channel`, whatever the transport; and how it fails: `Fault`.

Rule: a fault says which row of the retry table it is, and that depends on whether the call had
been written; the channel alone can know that. Implemented by `http_channel`, `sse_channel`,
`stdio_channel` and `kept`, used by `bridge.mcp.session`.
"""

import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup

from bridge.mcp import messages
from bridge.mcp.messages import Answer
from bridge.rules.retry import Failure, Kind
from bridge.wire.jsonrpc import Notification, Request, Response

Sink = Callable[[Request | Notification], Awaitable[None]]
"""Takes what a server sends beside its answers, in order."""

_ids = itertools.count(1)


def new_id() -> int:
    """An id no other request of this process has: an attempt's must differ from those before."""
    return next(_ids)


def plain_id(response: Response) -> bytes:
    """The id as we sent it: some servers give a number back as a string, or with a fraction."""
    return response.id.strip(b'"').removesuffix(b".0")


class Fault(Exception):
    """No answer came, and why."""

    def __init__(
        self,
        kind: Kind,
        detail: str,
        *,
        retry_after: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.failure = Failure(kind, detail, retry_after, status)

    @property
    def refuses(self) -> bool:
        """Whether it may be the era that the server does not take, not the one request."""
        return self.failure.kind == "rejected" and self.failure.status in (400, 404, 405, 406)


@dataclass
class Outgoing:
    """A request on its way. `counted`: it is the call itself, not what opens the session;
    `headers`: those of an HTTP request that mirror its body; `written`: the server may have it."""

    method: str
    params: Mapping[str, Any] | None
    counted: bool = False
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    id: int = field(default_factory=new_id)
    written: bool = False

    @property
    def body(self) -> bytes:
        """Its JSON text."""
        return messages.request(self.id, self.method, self.params)

    def owns(self, response: Response) -> bool:
        """Whether it answers this request."""
        return plain_id(response) == b"%d" % self.id

    def answer_in(self, response: Response) -> Answer:
        """What the response to it says; raises Fault if that is nothing."""
        answer = messages.answer(response)
        if answer is None:
            raise self.fault("the answer has neither a result nor an error")
        return answer

    def fault(self, detail: str) -> Fault:
        """The connection was lost, or what came is unreadable."""
        return Fault("lost" if self.counted and self.written else "opening", detail)

    def too_large(self, ceiling: int) -> Fault:
        """An answer of more than so many bytes came; where none is awaited, whatever came."""
        which = f"the answer to {self.method}" if self.method else "an answer"
        return Fault("rejected", f"{which} is over the limit of {ceiling} bytes (max_result_bytes)")


def nobody() -> Outgoing:
    """A request that was never sent, for reading where no answer is awaited."""
    return Outgoing("", None, id=0)


@asynccontextmanager
async def helpers() -> AsyncGenerator[TaskGroup]:
    """A task group for what helps the body: it ends with it, and never wraps the body's errors."""
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except BaseException as error:  # noqa: BLE001
            # Raised again outside the group.
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        try:
            raise failure
        finally:
            del failure


class Channel(Protocol):
    """The wire of one session."""

    version: str | None
    """The protocol version once it is known: HTTP says it in a header."""

    cancels_by_closing: bool
    """Whether a modern server takes the end of the exchange for a cancellation."""

    async def exchange(self, request: Outgoing) -> Answer:
        """Sends a request and waits for its answer; raises Fault.

        What comes meanwhile goes to the sink, all of it before this returns.
        """
        ...

    async def send(self, message: bytes) -> None:
        """Sends a notification or a response; raises Fault."""
        ...

    has_own_stream: bool
    """Whether what belongs to no request comes apart from the answers."""

    async def listen(self, ready: Callable[[], None]) -> None:
        """Receives what belongs to no request, until that ends; `ready` once it is under way.

        Beside exchanges only where that has a stream of its own.
        """
        ...

    async def end(self) -> None:
        """Takes leave of the server (DELETE); bounded by the caller. Never raises Fault."""
        ...
