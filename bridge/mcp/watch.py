"""A lasting session with one server, for what it says unasked, on behalf of one subscriber.

Rules: opened only for who asked to be told (resources/subscribe, subscriptions/listen), since a
call's session ends with the call; a session that ends is opened anew, with pauses that grow; the
subscriber's end is its end. Made by `bridge.mcp.news`.
"""

from collections.abc import Callable, Iterable
from typing import Any

import anyio
from anyio.abc import TaskGroup

from bridge.log import log
from bridge.mcp import eras
from bridge.mcp.channel import Fault, Outgoing
from bridge.mcp.eras import Era
from bridge.mcp.server import Server
from bridge.mcp.session import Deaf, Session
from bridge.wire.jsonrpc import Notification

Json = dict[str, Any]
Said = Callable[[Server, Notification], None]

_PAUSE, _LONGEST_PAUSE = 1.0, 30.0


class Watch(Deaf):
    """`uris` are the resources watched. `said` gets the server's notifications; never waits."""

    def __init__(self, server: Server, era: Era, said: Said, *, lists: bool = False) -> None:
        self.uris: dict[str, None] = {}
        self._server = server
        self._client = eras.ourselves(era)
        self._said = said
        self._lists = lists
        self._scope = anyio.CancelScope()
        self._session_scope: anyio.CancelScope | None = None
        self._changed = anyio.Event()

    def start(self, tasks: TaskGroup, uris: Iterable[str] = ()) -> None:
        self.uris.update(dict.fromkeys(uris))
        tasks.start_soon(self._run)

    def want(self, uri: str, wanted: bool) -> None:
        """Adds a resource to those watched, or takes it out: the session begins anew with them."""
        if wanted:
            self.uris[uri] = None
        else:
            self.uris.pop(uri, None)
        self._changed.set()
        if self._session_scope is not None:
            self._session_scope.cancel()

    def end(self) -> None:
        self._scope.cancel()

    async def _run(self) -> None:
        pause = _PAUSE
        with self._scope:
            while True:
                self._changed = anyio.Event()
                began = anyio.current_time()
                if self.uris or self._lists:
                    await self._attend()
                if self._changed.is_set():
                    continue
                # One that held for a while is no reason to wait longer the next time.
                held = anyio.current_time() - began > _LONGEST_PAUSE
                pause = _PAUSE if held else min(pause * 2, _LONGEST_PAUSE)
                with anyio.move_on_after(pause if self.uris or self._lists else float("inf")):
                    await self._changed.wait()

    async def _attend(self) -> None:
        """One session, to its end."""
        with anyio.CancelScope() as scope:
            self._session_scope = scope
            try:
                async with self._server.session(self._client, self, quiet=True) as session:
                    if session.era == "modern":
                        await self._listen_modern(session)
                    else:
                        await self._listen_legacy(session)
            except Fault as fault:
                words = self._server.masked(str(fault))
                log.info("MCP server %r is not watched: %s", self._server.name, words)
            finally:
                self._session_scope = None

    async def _listen_legacy(self, session: Session) -> None:
        for uri in list(self.uris):
            await session.ask("resources/subscribe", {"uri": uri})
        await session.channel.listen(lambda: None)

    async def _listen_modern(self, session: Session) -> None:
        wanted: Json = {"resourceSubscriptions": list(self.uris)} if self.uris else {}
        if self._lists:
            wanted.update(dict.fromkeys(eras.LIST_CHANGES, True))
        method = "subscriptions/listen"
        request = Outgoing(method, None, headers=[("Mcp-Method", method)])
        session.stamp(request, {"notifications": wanted})
        await session.call(request)

    # -- as a session's listener ----------------------------------------------------------------

    async def told(self, notification: Notification) -> None:
        self._said(self._server, notification)
