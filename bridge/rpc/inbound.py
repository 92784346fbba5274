"""The requests a peer has open with us, each answered exactly once by a task of its own.

Owns: the scopes by which `$/cancel_request` reaches them. Rule: whatever a handler does, the peer
gets one answer: its result, its RequestFailed, -32800 (or what its method has in place of that)
where the peer took the request back, or -32603. Used by `bridge.agent.services` and by the embedded
agent.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup

from bridge.errors import RequestFailed
from bridge.rpc.connection import Connection
from bridge.wire import codec, jsonrpc
from bridge.wire.jsonrpc import Notification, Request

Answer = Callable[[str, Any], Awaitable[Any]]
"""Takes method and decoded params, gives the result or raises RequestFailed."""

CANCEL = ("$/cancel_request", "$/cancelRequest")
"""Its name in ACP, and the one that the Kotlin SDK had for it."""


class _Cancelled(msgspec.Struct, rename="camel"):
    request_id: str | int | float


def _key(ident: bytes) -> str | float:
    """An id as a value: a peer may write one and the same id in several ways (1 and 1.0)."""
    return codec.decode(ident)


class Inbound:
    """Runs an `Answer` for each request. The group must outlive the connection's reader."""

    def __init__(self, connection: Connection, group: TaskGroup) -> None:
        self._connection = connection
        self.group = group
        self.withdrawn: dict[str, Any] = {}
        """The results, by method, of requests that the peer takes back; others fail with -32800."""
        self._scopes: dict[str | float, anyio.CancelScope] = {}

    def __len__(self) -> int:
        return len(self._scopes)

    def refuses(self, request: Request) -> bool:
        """Refuses a request whose id is open already (JSON-RPC 2.0 §4), and says whether it did."""
        if _key(request.id) not in self._scopes:
            return False
        words = f"request id {request.id.decode()} is open"
        self._connection.fail(request.id, jsonrpc.INVALID_REQUEST, words)
        return True

    def start(self, request: Request, answer: Answer) -> None:
        """Answers `request` in a task, unless it is to be refused."""
        if self.refuses(request):
            return
        scope = self._scopes[_key(request.id)] = anyio.CancelScope()
        self.group.start_soon(self._run, request, answer, scope, name=request.method)

    async def _run(self, request: Request, answer: Answer, scope: anyio.CancelScope) -> None:
        reply: Callable[[], None] | None = None
        connection, ident = self._connection, request.id
        try:
            with scope:
                try:
                    result = await answer(request.method, codec.decode(request.params))
                except RequestFailed as error:
                    code = jsonrpc.INTERNAL_ERROR if error.code is None else error.code
                    message, data = error.message, error.data
                    reply = lambda: connection.fail(ident, code, message, data)  # noqa: E731
                except Exception as error:  # noqa: BLE001 - the peer must get an answer
                    words = f"{type(error).__name__}: {error}"
                    reply = lambda: connection.fail(ident, jsonrpc.INTERNAL_ERROR, words)  # noqa: E731
                else:
                    reply = lambda: connection.reply(ident, result)  # noqa: E731
        finally:
            del self._scopes[_key(ident)]
            if reply is None and request.method in self.withdrawn:
                connection.reply(ident, self.withdrawn[request.method])
            elif reply is None:
                connection.fail(ident, jsonrpc.REQUEST_CANCELLED, "request cancelled")
            else:
                reply()

    def cancel(self, notification: Notification) -> None:
        """Acts on a `$/cancel_request`; an id that is not open is ignored (ACP, cancellation)."""
        try:
            params = codec.decode_as(notification.params, _Cancelled)
        except codec.JSONError:
            return
        scope = self._scopes.get(params.request_id)
        if scope is not None:
            scope.cancel()

    def cancel_all(self) -> None:
        """Takes back every open request; each is answered -32800."""
        for scope in list(self._scopes.values()):
            scope.cancel()
