"""The MCP proxy as the session layer and the command use it: `McpProxy`.

    async with McpProxy(on_event, family=family) as proxy:
        servers = proxy.mount("", config_servers, {"slow": {"timeout": 60}})   # for session/new
        result = await proxy.call_tool("", "files_read", {"path": "x"})
        proxy.forget("")

Owns: one loopback server for all mounts, and the tasks of all of them. Rule: leaving the context
leaves nothing behind, within a bound: calls are cancelled, sessions with servers ended, processes
gone. The daemon imports this only when a session has MCP servers.
"""

import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio

from bridge.errors import RequestFailed, UsageError, invalid_request
from bridge.io import httpserver
from bridge.io.family import Family
from bridge.mcp import eras, messages, settings, shim
from bridge.mcp.call import Tap, moment, unheeded
from bridge.mcp.channel import helpers
from bridge.mcp.dispatch import Inbound, answered
from bridge.mcp.eras import Client
from bridge.mcp.http_front import HttpFront, Mount
from bridge.mcp.hub import Hub
from bridge.mcp.messages import Answer
from bridge.mcp.settings import Upstream
from bridge.wire import codec, http_guard, jsonrpc
from bridge.wire.codec import Raw

if TYPE_CHECKING:
    from bridge.mcp.origin import Heads

LEFT_RUNNING = 1.0
"""Seconds for an agent to end the calls of a turn it has cancelled by itself."""

Json = dict[str, Any]
OnEvent = Callable[[Json], None]


class _Host:
    """The host as a caller: it is asked nothing and told nothing meanwhile."""

    client = Client("legacy", eras.LEGACY)

    async def tell(self, message: bytes) -> None:
        return

    async def ask(self, method: str, params: Raw) -> Answer:
        return messages.error(jsonrpc.METHOD_NOT_FOUND, "the host takes no requests")


class _Mounted:
    """What is kept of a session: its servers as given, its mount, and where that is."""

    def __init__(self, given: list[Json], mount: Mount, token: str) -> None:
        self.given = given
        self.mount = mount
        self.token = token


class McpProxy:
    """An async context manager: it listens for as long as the context lasts.

    `on_event` gets one event an attempt, with the session's name in it; `on_life` the name of the
    session whose call has made progress; `environment` is where a stdio server's inherited
    variables come from. Entering raises UsageError.
    """

    def __init__(
        self,
        on_event: OnEvent,
        *,
        on_life: Callable[[str], None] | None = None,
        family: Family | None = None,
        tap: Tap | None = None,
        heads: "Heads | None" = None,
        environment: Mapping[str, str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        allow_remote: bool = False,
    ) -> None:
        self._on_event = on_event
        self._on_life = on_life
        self._family = family or Family()
        self._tap = tap
        self._heads = heads
        self._environment = os.environ if environment is None else environment
        self._listen = httpserver.listen(host, port, allow_remote=allow_remote)
        self._front = HttpFront(allow_remote=allow_remote)
        self._mounted: dict[str, _Mounted] = {}
        self._context = self._running()

    async def __aenter__(self) -> "McpProxy":
        await self._context.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._context.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def _running(self) -> AsyncGenerator[None]:
        async with self._listen as self._server, helpers() as self._tasks:
            self._tasks.start_soon(self._serve)
            try:
                yield
            finally:
                for session in list(self._mounted):
                    self.forget(session)

    async def _serve(self) -> None:
        await self._server.serve(self._front.handle)

    # -- mounts ---------------------------------------------------------------------------------

    def mount(
        self,
        session: str,
        servers: Sequence[Json],
        options: Mapping[str, Json] | None = None,
        *,
        http: bool = True,
    ) -> list[Json]:
        """Puts a session's servers behind the proxy; gives the entries its agent shall see.

        `servers`: ACP's `mcpServers`; `options`: MCP_PROXY.md's keys by server name (`proxy: false`
        leaves a server as it is); `http`: the agent's `mcpCapabilities.http`, without which it gets
        stdio shims. The servers are being listed when this returns. Raises BridgeError
        `invalid_request`.
        """
        self._unmount(session)
        policies = dict(options or {})
        try:
            upstreams = settings.from_acp(servers, policies, self._environment)
        except UsageError as error:
            raise invalid_request(str(error)) from None
        behind = [upstream for upstream in upstreams if upstream.policy.proxy]

        def on_event(event: Json) -> None:
            self._on_event({**event, "session": session})

        def alive() -> None:
            if self._on_life is not None:
                self._on_life(session)

        mounted = self._mount(behind, on_event, alive=alive)
        self._mounted[session] = _Mounted([dict(server) for server in servers], *mounted)
        return self.entries(session, http=http)

    def mount_upstreams(
        self, session: str, upstreams: Sequence[Upstream], *, short_names: bool = False
    ) -> tuple[Hub, str, dict[str, str]]:
        """As `mount`, for servers from a file: the hub, the URL of all, the URL of each."""
        mount, token = self._mount(upstreams, self._on_event, short_names=short_names)
        self._mounted[session] = _Mounted([], mount, token)
        all_of_them = f"http://{self.authority}/{token}/mcp"
        each = {name: f"{all_of_them}/{segment}" for name, segment in mount.segments.items()}
        return mount.hub, all_of_them, each

    def _mount(
        self,
        upstreams: Sequence[Upstream],
        on_event: OnEvent,
        *,
        alive: Callable[[], None] = unheeded,
        short_names: bool = False,
    ) -> tuple[Mount, str]:
        hub = Hub(
            upstreams,
            family=self._family,
            tasks=self._tasks,
            on_event=on_event,
            tap=self._tap,
            heads=self._heads,
            alive=alive,
            short_names=short_names,
        )
        mount, token = Mount(hub), http_guard.new_segment()
        self._front.mounts[token] = mount
        hub.start()
        return mount, token

    @property
    def authority(self) -> str:
        """HOST:PORT of the endpoint."""
        return self._server.authority

    def entries(self, session: str, *, http: bool) -> list[Json]:
        """The entries for the agent of a session that is mounted."""
        mounted = self._find(session)
        return [self._entry(server, mounted, http=http) for server in mounted.given]

    def _entry(self, server: Json, mounted: _Mounted, *, http: bool) -> Json:
        name = server["name"]
        segment = mounted.mount.segments.get(name)
        if segment is None:
            return server
        place = f"{self.authority}/{mounted.token}/mcp/{segment}"
        if http:
            return {"type": "http", "name": name, "url": f"http://{place}", "headers": []}
        return {
            "name": name,
            "command": sys.executable,
            "args": ["-I", "-S", shim.__file__],
            "env": [{"name": shim.PLACE, "value": place}],
        }

    def mounted(self, session: str) -> bool:
        """Whether a session's servers are behind the proxy."""
        return session in self._mounted

    def forget(self, session: str) -> None:
        """Ends a session's mount, if there is one: its calls are cancelled, the host's too."""
        if (mounted := self._unmount(session)) is not None:
            mounted.mount.hub.end_all()

    def _unmount(self, session: str) -> _Mounted | None:
        mounted = self._mounted.pop(session, None)
        if mounted is not None:
            self._front.mounts.pop(mounted.token, None)
            mounted.mount.end()
            mounted.mount.hub.close()
        return mounted

    def moment(self) -> int:
        """Tells calls that came before from those that come after."""
        return moment()

    def turn_cancelled(self, session: str, at: int) -> None:
        """A turn has ended that the session's agent was told to cancel at that moment: tool calls
        from before it that are still running soon after are ended."""
        if (mounted := self._mounted.get(session)) is not None:
            self._tasks.start_soon(_end_left, mounted.mount.hub, at)

    def _find(self, session: str) -> _Mounted:
        mounted = self._mounted.get(session)
        if mounted is None:
            raise invalid_request(f"session {session!r} has no MCP servers behind the proxy")
        return mounted

    # -- the host's own calls -------------------------------------------------------------------

    async def call_tool(self, session: str, name: str, arguments: Any = None) -> Raw:
        """The MCP result (`isError` ones too) of a tool under its full name, `<server>_<tool>`.

        Raises RequestFailed (a JSON-RPC error, as for an unknown tool), BridgeError.
        """
        params = {"name": name, "arguments": arguments}
        return await self._request(session, "tools/call", params)

    async def list_tools(self, session: str) -> Raw:
        """The result of tools/list over all servers of a session. Raises as `call_tool`."""
        return await self._request(session, "tools/list", {})

    async def _request(self, session: str, method: str, params: Json) -> Raw:
        view = self._find(session).mount.view("/mcp")
        assert view is not None
        members = messages.members(codec.encode(params)) or {}
        inbound = Inbound(view, _Host(), method, members, began=float("inf"))
        answer = await answered(inbound)
        if answer.result is not None:
            return answer.result
        error = codec.decode(answer.error or b"{}")
        raise RequestFailed(error.get("code"), error.get("message", ""), error.get("data"))


async def _end_left(hub: Hub, at: int) -> None:
    await anyio.sleep(LEFT_RUNNING)
    hub.end_calls(before=at)
