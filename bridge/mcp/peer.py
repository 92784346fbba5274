"""A caller we have a lasting connection with: a legacy HTTP session, or a client on stdio.

Owns: its calls that run (by its ids) and the questions it has been asked (by ours). Rule: one
caller's ids mean nothing to another's. Used by `http_front` and `lines_front`.
"""

import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import anyio

from bridge.log import log
from bridge.mcp import eras, messages
from bridge.mcp.dispatch import Inbound, answered, tool_failure
from bridge.mcp.eras import Client
from bridge.mcp.messages import Answer
from bridge.mcp.news import UPDATED, News
from bridge.mcp.relay import Caller
from bridge.mcp.resources import owner_of_uri
from bridge.mcp.view import View
from bridge.wire import codec, jsonrpc
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Notification, Request, Response

Json = dict[str, Any]

_LEGACY_ONLY = frozenset(
    (
        *("initialize", "ping", "logging/setLevel"),
        *("resources/subscribe", "resources/unsubscribe"),
    )
)
_SUBSCRIBING = frozenset(("resources/subscribe", "resources/unsubscribe"))
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
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
        self._news: News | None = None
        self._opened = anyio.Event()

    @property
    def busy(self) -> bool:
        """Whether anything of it is being carried out."""
        return bool(self._calls)

    @property
    def opened(self) -> bool:
        """Whether it has said who it is."""
        return self._opened.is_set()

    # -- from the caller ------------------------------------------------------------------------

    async def serve(
        self,
        request: Request,
        send: Send,
        client: Client | None = None,
        headers: Mapping[str, Sequence[str]] | None = None,
    ) -> bytes:
        """Carries out a request and gives its response's bytes.

        `client`: the caller as this request presents it, if not as at initialize; `headers`: as in
        `Inbound`. A call that is cancelled by a notification ends with a result that says so, any
        other request with an error; a fault of ours is an error of the request alone.
        """
        answer: Answer | None = None
        with anyio.CancelScope() as scope:
            self._calls[request.id] = scope
            try:
                answer = await self._answer(request, send, client or self.client, headers)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                raise
            except Exception as error:  # noqa: BLE001 - the proxy outlives any fault of ours
                log.error("an MCP request failed: %r", error, exc_info=error)
                answer = messages.error(jsonrpc.INTERNAL_ERROR, f"internal error: {error!r}")
            finally:
                if self._calls.get(request.id) is scope:
                    del self._calls[request.id]
        if answer is None and request.method == "tools/call":
            details = {"code": "cancelled", "attempts": 0, "cause": "cancelled by the caller"}
            answer = tool_failure("The call was cancelled.", details)
        elif answer is None:
            answer = messages.error(jsonrpc.REQUEST_CANCELLED, "the request was cancelled")
        return messages.response(request.id, answer)

    async def _answer(
        self,
        request: Request,
        send: Send,
        client: Client,
        headers: Mapping[str, Sequence[str]] | None,
    ) -> Answer:
        params = messages.members(request.params)
        if params is None:
            if bytes(request.params) != b"null":
                return messages.error(jsonrpc.INVALID_PARAMS, "params must be an object")
            params = {}
        method = request.method
        if client.era == "modern":
            if client.version != eras.MODERN:
                data = {"supported": [eras.MODERN], "requested": client.version}
                words = f"Unsupported protocol version: {client.version}"
                return messages.error(jsonrpc.UNSUPPORTED_VERSION, words, data)
            if method == "subscriptions/listen":
                return await self._listen(request, params, send)
            if method in _LEGACY_ONLY:
                return messages.error(jsonrpc.METHOD_NOT_FOUND, f"Method not found: {method}")
        elif method == "initialize":
            return await self._initialize(params)
        elif method == "logging/setLevel":
            return self._set_level(params)
        asker = _Asker(self, send, client)
        inbound = Inbound(self.view, asker, method, params, headers)
        answer = await answered(inbound)
        if method in _SUBSCRIBING and answer.result is not None:
            await self._subscribe(method, params, asker)
        return answer

    async def _initialize(self, params: messages.Members) -> Answer:
        """Takes down who the caller is and says what is here; the version is the caller's if it
        is one we speak."""
        said = codec.decode(params["protocolVersion"]) if "protocolVersion" in params else None
        version = said if isinstance(said, str) and said in eras.LEGACY_VERSIONS else eras.LEGACY
        capabilities = messages.members(params.get("capabilities", Raw(b"{}"))) or {}
        info: Any = params.get("clientInfo", eras.OUR_INFO)
        self.client = Client("legacy", version, info, capabilities)
        await self.view.met("legacy")
        if self._news is None:
            self._news = News(self.view.hub, self.view.servers)
            self._opened.set()
        return messages.result(
            {
                "protocolVersion": version,
                "capabilities": self.view.capabilities("legacy"),
                **self.view.presentation("legacy"),
            }
        )

    def _set_level(self, params: messages.Members) -> Answer:
        level = codec.decode(params["level"]) if "level" in params else None
        if not isinstance(level, str) or level not in eras.LOG_LEVELS:
            return messages.error(jsonrpc.INVALID_PARAMS, f"no such log level: {level!r}")
        # Every session with a server is a new one: it is told there.
        self.client = self.client._replace(log_level=level)
        return messages.result({})

    async def _subscribe(self, method: str, params: messages.Members, caller: Caller) -> None:
        """The server takes the subscription: kept in a session that lasts, unlike that of the
        request."""
        uri = codec.decode(params["uri"])
        server = self.view.lone or await owner_of_uri(self.view, uri, caller)
        if self._news is not None:
            self._news.watch(server, "legacy", uri, method == "resources/subscribe")

    async def _listen(self, request: Request, params: messages.Members, send: Send) -> Answer:
        """A modern subscription: its response is the stream of what it is told."""
        wanted = messages.members(params.get("notifications", Raw(b"{}"))) or {}
        honoured: Json = {
            name: True
            for name in eras.LIST_CHANGES
            if name in wanted and bytes(wanted[name]) == b"true"
        }
        uris = messages.items(wanted.get("resourceSubscriptions", Raw(b"[]"))) or []
        named = [uri for uri in map(codec.decode, uris) if isinstance(uri, str)]
        if named:
            honoured["resourceSubscriptions"] = named
        methods = {method for name, method in eras.LIST_CHANGES.items() if name in honoured}
        methods.add(UPDATED)
        news = News(self.view.hub, self.view.servers, methods.__contains__)
        meta: Json = {eras.SUBSCRIPTION_KEY: Raw(request.id)}

        async def tell(message: bytes) -> None:
            fields = messages.members(message) or {}
            inner = messages.members(fields.get("params", Raw(b"{}"))) or {}
            params = {**inner, "_meta": meta}
            await send(messages.notification(codec.decode(fields["method"]), params))

        try:
            acknowledged = {"notifications": honoured, "_meta": meta}
            await send(messages.notification(_ACKNOWLEDGED, acknowledged))
            for server in self.view.servers if honoured else ():
                news.watch_all(server, named, lists=len(methods) > 1)
            await news.pour(tell)
        finally:
            news.end()
        return messages.result({"_meta": meta, "resultType": "complete"})

    async def pour(self, send: Send) -> None:
        """Sends what a legacy caller is told outside of its requests, until it ends."""
        await self._opened.wait()
        if self._news is not None:
            await self._news.pour(send)

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
        if settle is not None:
            nothing = messages.error(jsonrpc.INTERNAL_ERROR, "the client answered with nothing")
            settle(messages.answer(response) or nothing)

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
            await send(codec.encode(message))
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
        self._opened.set()
        if self._news is not None:
            self._news.end()


class _Asker:
    """One request's caller, as `bridge.mcp.relay` sees it."""

    def __init__(self, peer: Peer, send: Send, client: Client) -> None:
        self._peer = peer
        self._send = send
        self.client = client

    async def tell(self, message: bytes) -> None:
        await self._send(message)

    async def ask(self, method: str, params: Raw) -> Answer:
        if self.client.era == "modern":
            # Asked in the answers to its calls (`bridge.mcp.parked`), never by requests.
            words = f"{method} cannot be asked here of a client of {eras.MODERN}"
            return messages.error(jsonrpc.METHOD_NOT_FOUND, words)
        return await self._peer.ask(method, params, self._send)
