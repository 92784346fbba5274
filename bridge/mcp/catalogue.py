"""One server's tools as it last listed them, kept fresh.

Owns: the list, its age, and the reason where there is none. Rules: one listing at a time, in a
session of its own, bounded; a server that is down is tried again until it is up, and what it
listed before stays known meanwhile. Made by `bridge.mcp.hub`, one a server.
"""

from collections.abc import Callable
from typing import NamedTuple

import anyio
from anyio.abc import TaskGroup

from bridge.log import log
from bridge.mcp import eras, messages, mirrored, pages
from bridge.mcp.attempt import Attempt
from bridge.mcp.channel import Fault
from bridge.mcp.eras import Client, Era
from bridge.mcp.messages import Members
from bridge.mcp.pages import Listed
from bridge.mcp.server import Server
from bridge.mcp.session import Deaf, Session
from bridge.rules.retry import Failure
from bridge.wire import codec, jsonrpc
from bridge.wire.codec import Raw
from protocol_schemas.mcp import Hints

OLDEST = 300.0
LISTING_BOUND = 60.0
_TRY_AGAIN = 2.0
_TRY_AGAIN_STDIO = 30.0


class Tool(NamedTuple):
    """A tool as its server describes it: `raw` is the whole, the rest what is acted on."""

    name: str
    raw: Raw
    hints: Hints
    schema: Raw | None

    def mirrors(self) -> list[mirrored.Mirror]:
        """The arguments that go into headers; none if the annotations are not valid."""
        if self.schema is None or b"x-mcp-header" not in bytes(self.schema):
            return []
        return mirrored.mirrors(codec.decode(self.schema)) or []


class Catalogue:
    """`tools` by their own names; `failure` says why the last listing gave none.

    `client` is who the list is for: some servers offer tools only to clients that can be asked for
    what these need. `heard` tells whether anybody listens for changes.
    """

    def __init__(
        self,
        server: Server,
        tasks: TaskGroup,
        on_change: Callable[[Server], None],
        client: Client | None = None,
        heard: Callable[[], bool] = lambda: False,
    ) -> None:
        self.server = server
        self.era: Era | None = None
        """The era it was listed in."""
        self._client = client or eras.ourselves(server.first_era)
        self.tools: dict[str, Tool] = {}
        self.rest: Members = {}
        """What the server's list has beside its tools."""
        self.failure: str | None = None
        self.listed_at: float | None = None
        self._tasks = tasks
        self._on_change = on_change
        self._heard = heard
        self._running: anyio.Event | None = None
        self._tried = anyio.Event()
        self._stale = anyio.Event()
        self._announced = False

    @property
    def known(self) -> bool:
        """Whether the server has been listed at all."""
        return self.listed_at is not None

    async def watch(self) -> None:
        """Lists at once, and from then on whenever there is cause to; until cancelled."""
        pause = _TRY_AGAIN
        while True:
            await self.refresh()
            self._stale = anyio.Event()
            if self.failure is None:
                pause = _TRY_AGAIN
                await self._aged()
                continue
            with anyio.move_on_after(pause):
                await self._stale.wait()
            if self.server.upstream.transport == "stdio":
                # A process that cannot start is not to be started thirty times a minute.
                pause = min(pause * 2, _TRY_AGAIN_STDIO)

    async def _aged(self) -> None:
        """Waits until the list is to be read anew: it was spoilt, or is old and somebody would
        want to hear of its changes. (A process is not started for that.)"""
        polled = self.server.upstream.transport != "stdio"
        while True:
            with anyio.move_on_after(OLDEST):
                await self._stale.wait()
                return
            if polled and self._heard():
                return

    def spoil(self) -> None:
        """The server says that its list has changed: has it listed again, and that told."""
        self._announced = True
        self._stale.set()

    async def tried(self) -> None:
        """Returns when a listing has been tried, whatever came of it."""
        await self._tried.wait()

    async def fresh(self, within: float) -> None:
        """Lists again if the list is old or missing, waiting no longer than `within` seconds."""
        if self.listed_at is None or anyio.current_time() - self.listed_at > OLDEST:
            with anyio.move_on_after(within):
                await self.refresh()

    async def refresh(self) -> None:
        """Lists the server anew; joins a listing that is under way. Never raises."""
        if self._running is None:
            self._running = anyio.Event()
            self._tasks.start_soon(self._list, self._running)
        await self._running.wait()

    async def _list(self, done: anyio.Event) -> None:
        attempt = Attempt(
            self.server,
            self._client,
            Deaf(),
            _tools,
            timeout=LISTING_BOUND,
            describe=True,
            quiet=True,
        )
        try:
            outcome = await attempt.result(self._tasks)
            if attempt.session is not None:
                self.era = attempt.session.era
            self._take(outcome)
        finally:
            self._running = None
            self._tried.set()
            done.set()

    def _take(self, outcome: Listed | Failure) -> None:
        if isinstance(outcome, Failure):
            failure = self.server.masked(outcome.detail)
            if failure != self.failure:
                log.warning("MCP server %r cannot be listed: %s", self.server.name, failure)
            self.failure = failure
            return
        recovered = self.failure is not None
        if recovered:
            log.warning("MCP server %r is there now", self.server.name)
        before = [tool.raw for tool in self.tools.values()]
        # Who asked before the first listing has been waiting for it, and needs no telling.
        first = self.listed_at is None and not recovered
        self.failure = None
        self.listed_at = anyio.current_time()
        self.rest = outcome.rest
        self.tools = {}
        for tool in map(_tool, outcome.items):
            # One that a server lists twice is one tool.
            if tool is not None:
                self.tools.setdefault(tool.name, tool)
        changed = before != [tool.raw for tool in self.tools.values()]
        if self._announced or (changed and not first):
            self._announced = False
            self._on_change(self.server)


async def _tools(session: Session) -> Listed:
    found = await pages.listed(session, "tools/list")
    if isinstance(found, Listed):
        return found
    if found.code == jsonrpc.METHOD_NOT_FOUND:
        return Listed([], {})
    text = bytes(found.error or b"").decode(errors="replace")
    raise Fault("opening", f"tools/list was refused: {text[:500]}")


def _tool(raw: Raw) -> Tool | None:
    """What is acted on of a tool; None for what has no name."""
    fields = messages.members(raw) or {}
    name = codec.decode(fields["name"]) if "name" in fields else None
    if not isinstance(name, str):
        return None
    hints = Hints()
    if "annotations" in fields:
        said = codec.mapping(codec.decode(fields["annotations"])) or {}
        # A hint that is no boolean says nothing.
        hints = codec.convert({k: v for k, v in said.items() if isinstance(v, bool)}, Hints)
    return Tool(name, raw, hints, fields.get("inputSchema"))
