"""What a caller is told outside of any request: changed lists, updated resources.

Owns: the queue between those who know and the stream that takes it, and the caller's watches.
Rules: telling never waits; a message that is already waiting is not queued twice, so the queue is
bounded by what there is to be told; nothing is lost while no stream is open. Used by
`bridge.mcp.peer`.
"""

from collections import deque
from collections.abc import Awaitable, Callable

import anyio

from bridge.mcp import messages
from bridge.mcp.eras import Era
from bridge.mcp.hub import Hub
from bridge.mcp.server import Server
from bridge.mcp.watch import Watch
from bridge.wire import codec
from bridge.wire.jsonrpc import Notification

UPDATED = "notifications/resources/updated"
_MOST = 4096


class News:
    """For a caller that sees `servers` of a hub. `wants` chooses among notifications by method."""

    def __init__(
        self, hub: Hub, servers: list[Server], wants: Callable[[str], bool] = lambda _: True
    ) -> None:
        self._hub = hub
        self._names = {server.name for server in servers}
        self._wants = wants
        self._queue: deque[bytes] = deque()
        self._fresh = anyio.Event()
        self._turn = 0
        self._ended = False
        self._watches: dict[str, Watch] = {}
        self._unsubscribe = hub.subscribe(self._changed)

    def _changed(self, server: str, method: str) -> None:
        if server in self._names and self._wants(method):
            self.put(messages.notification(method))

    def put(self, message: bytes) -> None:
        """Has a message told, unless it waits to be told already."""
        if not self._ended and message not in self._queue and len(self._queue) < _MOST:
            self._queue.append(message)
            self._fresh.set()

    async def pour(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Sends what there is to be told, until the end or until another stream takes over."""
        self._turn += 1
        turn = self._turn
        self._fresh.set()
        while not self._ended and turn == self._turn:
            if not self._queue:
                self._fresh = anyio.Event()
                await self._fresh.wait()
                continue
            # Taken out once it is sent: a stream that breaks loses nothing.
            await send(self._queue[0])
            self._queue.popleft()

    def watch(self, server: Server, era: Era, uri: str, wanted: bool) -> None:
        """Has a resource's updates told, or no longer."""
        known = self._watches.get(server.name)
        if known is None:
            known = self._watches[server.name] = Watch(server, era, self._said)
            known.start(self._hub.tasks)
        known.want(uri, wanted)

    def watch_all(self, server: Server, uris: list[str], *, lists: bool) -> None:
        """A modern subscription: one for all it is to cover."""
        known = self._watches[server.name] = Watch(server, "modern", self._said, lists=lists)
        known.start(self._hub.tasks, uris)

    def _said(self, server: Server, notification: Notification) -> None:
        """What a watched server says."""
        if notification.method == UPDATED:
            fields = messages.members(notification.params) or {}
            uri = codec.decode(fields["uri"]) if "uri" in fields else None
            if isinstance(uri, str):
                self.put(messages.notification(UPDATED, {"uri": uri}))
        elif notification.method.endswith("/list_changed"):
            self._hub.changed(server, notification.method)

    def end(self) -> None:
        """Nothing is told any more; whoever pours returns."""
        self._ended = True
        self._fresh.set()
        self._unsubscribe()
        for watch in self._watches.values():
            watch.end()
