"""A caller we have a lasting connection with: a legacy HTTP session, or a client on stdio.

Owns: its calls that run (by its ids) and the questions it has been asked (by ours). Rule: one
caller's ids mean nothing to another's. Used by `http_front` and `stdio_front`.
"""

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from bridge.mcp import eras, messages
from bridge.mcp.dispatch import Inbound, answered, tool_failure
from bridge.mcp.eras import Client
from bridge.mcp.messages import Answer
from bridge.mcp.view import View
from bridge.wire import codec, jsonrpc
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Notification, Request, Response

Json = dict[str, Any]
Send = Callable[[bytes], Awaitable[None]]
"""Sends one message to the caller, on the stream of the request it belongs to."""


class Peer:
    """`client` is what it said of itself at initialize."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.client = Client("legacy", eras.LEGACY)
        self._calls: dict[bytes, anyio.CancelScope] = {}
        self._asked: dict[bytes, Callable[[Answer], None]] = {}
        self._ids = itertools.count(1)

    # -- from the caller ------------------------------------------------------------------------

    async def serve(self, request: Request, send: Send, client: Client | None = None) -> bytes:
        """Carries out a request and gives its response's bytes.

        `client`: a modern caller as this request presents it. A call that is cancelled by a
        notification ends with a result that says so.
        """
        params = messages.members(request.params)
        if params is None and bytes(request.params) != b"null":
            refusal = messages.error(jsonrpc.INVALID_PARAMS, "params must be an object")
            return messages.response(request.id, refusal)
        answer: Answer | None = None
        with anyio.CancelScope() as scope:
            self._calls[request.id] = scope
            try:
                answer = await self._answer(request, params or {}, send, client or self.client)
            finally:
                if self._calls.get(request.id) is scope:
                    del self._calls[request.id]
        if answer is None:
            details = {"code": "cancelled", "attempts": 0, "cause": "cancelled by the caller"}
            answer = tool_failure("The call was cancelled.", details)
        return messages.response(request.id, answer)

    async def _answer(
        self, request: Request, params: messages.Members, send: Send, client: Client
    ) -> Answer:
        if client.era == "legacy":
            if request.method == "initialize":
                return await self.initialize(params)
            if request.method == "logging/setLevel":
                return self._set_level(params)
        return await answered(
            Inbound(self.view, _Asker(self, send, client), request.method, params)
        )

    async def initialize(self, params: messages.Members) -> Answer:
        """Takes down who the caller is and says what is here; the version is the caller's if it
        is one we speak."""
        said = codec.decode(params["protocolVersion"]) if "protocolVersion" in params else None
        version = said if isinstance(said, str) and said in eras.LEGACY_VERSIONS else eras.LEGACY
        capabilities = messages.members(params.get("capabilities", Raw(b"{}"))) or {}
        info: Any = params.get("clientInfo", eras.OUR_INFO)
        self.client = Client("legacy", version, info, capabilities)
        await self.view.met()
        return messages.result(
            {
                "protocolVersion": version,
                "capabilities": {
                    **self.view.capabilities(),
                },
                **self.view.presentation(),
            }
        )

    def _set_level(self, params: messages.Members) -> Answer:
        level = codec.decode(params["level"]) if "level" in params else None
        if level not in eras.LOG_LEVELS:
            return messages.error(jsonrpc.INVALID_PARAMS, f"no such log level: {level!r}")
        # Every session with a server is a new one: it is told there.
        self.client = self.client._replace(log_level=level)
        return messages.result({})

    def notified(self, notification: Notification) -> None:
        """A notification of the caller's."""
        if notification.method == "notifications/cancelled":
            ident = (messages.members(notification.params) or {}).get("requestId")
            scope = self._calls.get(b"" if ident is None else bytes(ident))
            if scope is not None:
                scope.cancel()

    def settled(self, response: Response) -> None:
        """The caller's answer to a question of ours."""
        settle = self._asked.pop(response.id, None)
        answer = messages.answer(response)
        if settle is not None and answer is not None:
            settle(answer)

    # -- to the caller --------------------------------------------------------------------------

    async def ask(self, method: str, params: Raw, send: Send) -> Answer:
        """Sends the caller a request and waits for its answer."""
        ident = next(self._ids)
        key = b"%d" % ident
        got: list[Answer] = []
        settled = anyio.Event()

        def settle(answer: Answer) -> None:
            got.append(answer)
            settled.set()

        self._asked[key] = settle
        message: Json = {"jsonrpc": "2.0", "id": ident, "method": method}
        if bytes(params) != b"null":
            message["params"] = params
        try:
            await send(messages.line(message))
            await settled.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                gone = {"requestId": ident, "reason": "the server no longer asks"}
                await send(messages.notification("notifications/cancelled", gone))
            raise
        finally:
            self._asked.pop(key, None)
        return got[0]

    def end(self) -> None:
        """Cancels its calls: the caller has gone."""
        for scope in list(self._calls.values()):
            scope.cancel()


class _Asker:
    """One request's caller, as `bridge.mcp.relay` sees it."""

    def __init__(self, peer: Peer, send: Send, client: Client) -> None:
        self._peer = peer
        self._send = send
        self.client = client

    async def tell(self, message: bytes) -> None:
        await self._send(message)

    async def ask(self, method: str, params: Raw) -> Answer:
        return await self._peer.ask(method, params, self._send)
