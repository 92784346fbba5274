"""What a server says while it works on a call, passed to the caller.

Owns: the progress of one call over all its attempts. Rules: progress carries the caller's own
token and never goes back; a request goes to the caller only if the caller said it can take it.
Made by `bridge.mcp.call`, one a call; handed to its sessions as their listener.
"""

from collections.abc import Callable
from typing import Any, Protocol

from bridge.mcp import eras, messages
from bridge.mcp.eras import Client
from bridge.mcp.messages import Answer
from bridge.mcp.server import Server
from bridge.wire import codec, jsonrpc
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Notification, Request

_ASKED_OF = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}
"""A server's request -> the capability by which a caller says it can take it."""

_LIST_CHANGED = frozenset(eras.LIST_CHANGES.values())


class Caller(Protocol):
    """Who made the request: an HTTP session's exchange, a stdio client, or the host."""

    @property
    def client(self) -> Client:
        """How it presents itself to servers."""
        ...

    async def tell(self, message: bytes) -> None:
        """Passes a notification on, on the request's own stream."""
        ...

    async def ask(self, method: str, params: Raw) -> Answer:
        """Has the caller answer a server's request."""
        ...


class Relay:
    """The listener of a call's sessions. `extend` is called as the server gets on."""

    def __init__(
        self,
        server: Server,
        caller: Caller,
        token: Raw | None,
        changed: Callable[[Server, str], None],
    ) -> None:
        self.expected = b""
        """The JSON text of the progress token given to the server in this attempt."""
        self.extend: Callable[[], None] = lambda: None
        self._server = server
        self._caller = caller
        self._token = token
        self._changed = changed
        self._base: float = 0
        self._last: float | None = None

    @property
    def wanted(self) -> bool:
        """Whether the caller asked for progress."""
        return self._token is not None

    def next_attempt(self) -> None:
        """A further attempt counts from where the last one stood."""
        self._base = self._last or 0

    async def told(self, notification: Notification) -> None:
        if notification.method == "notifications/progress":
            await self._progress(notification.params)
        elif notification.method in _LIST_CHANGED:
            self._changed(self._server, notification.method)
        else:
            await self._caller.tell(messages.notification(notification.method, notification.params))

    async def _progress(self, params: Raw) -> None:
        fields = messages.members(params) or {}
        if bytes(fields.get("progressToken", b"")) != self.expected:
            return
        self.extend()
        value = _number(fields.get("progress"))
        if self._token is None or value is None:
            return
        value += self._base
        if self._last is not None and value <= self._last:
            return
        self._last = value
        passed: dict[str, Any] = {**fields, "progressToken": self._token}
        if self._base:
            passed["progress"] = value
            total = _number(fields.get("total"))
            if total is not None:
                passed["total"] = total + self._base
        await self._caller.tell(messages.notification("notifications/progress", passed))

    async def asked(self, request: Request) -> Answer:
        capability = _ASKED_OF.get(request.method)
        client = self._caller.client
        if capability is None or capability not in client.capabilities:
            return messages.error(
                jsonrpc.METHOD_NOT_FOUND, f"the caller does not take {request.method}"
            )
        self.extend()
        answer = await self._caller.ask(request.method, request.params)
        self.extend()
        return answer


def _number(raw: Raw | None) -> float | None:
    value = None if raw is None else codec.decode(raw)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
