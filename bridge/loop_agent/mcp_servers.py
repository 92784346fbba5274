"""A session's MCP servers: connected in parallel, their tools by name, calls.

Owns: the names (`<server>_<tool>`, bare for a server named "") and the deadline for listing.
Rules: a server that cannot be reached or listed is an error of the session request that names it; a
server lost later is an error of the call, which the model reads, and is connected anew by the next.
The mcp package is imported by the first session that has servers: it costs 700 ms.
Made by `bridge.loop_agent.sessions`.
"""

import importlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from bridge.io.family import Family
from bridge.log import log
from bridge.loop_agent.failures import failed, invalid_params
from bridge.loop_agent.toolbox import Json, Plan, Result, Spec, Toolbox, ToolError, text_block
from bridge.mcp.content import chat_content
from protocol_schemas.agent_requests import McpServer

if TYPE_CHECKING:
    from bridge.loop_agent.mcp_link import Link

LISTING = 60.0
"""Seconds for all servers together to connect and list their tools."""
_CLOSING = 2.0
_USUAL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class McpServers:
    """The servers of one session. `group` is where connections live; it outlives the session."""

    def __init__(
        self, servers: Sequence[McpServer], cwd: str, family: Family, group: TaskGroup
    ) -> None:
        for server in servers:
            check(server)
        names = [server.name for server in servers]
        for name in names:
            if names.count(name) > 1:
                raise invalid_params(f"two MCP servers are named {name!r}")
        self._servers = [Server(server, cwd, family, group) for server in servers]

    async def add_tools(self, toolbox: Toolbox) -> None:
        """Connects to every server and adds its tools; raises RequestFailed, DuplicateTool."""
        if not self._servers:
            return
        # In a thread, so that the agent goes on answering meanwhile.
        await anyio.to_thread.run_sync(importlib.import_module, "bridge.loop_agent.mcp_link")
        with anyio.move_on_after(LISTING):
            async with anyio.create_task_group() as tasks:
                for server in self._servers:
                    tasks.start_soon(server.list_tools)
        problems = [server.problem for server in self._servers if server.problem is not None]
        if problems:
            raise failed("an MCP server is not usable", "; ".join(problems))
        for server in self._servers:
            toolbox.add(server.tools, f"MCP server {server.name!r}")

    async def close(self) -> None:
        """Ends all connections, within a bound, also where the caller is being cancelled."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for server in self._servers:
                    tasks.start_soon(server.close)


class Server:
    """One server. `problem`: why it has no tools; None once they are listed."""

    def __init__(self, server: McpServer, cwd: str, family: Family, group: TaskGroup) -> None:
        self.name = server.name
        self.tools: list[McpTool] = []
        self.problem: str | None = f"{server.name!r} did not list its tools within {LISTING:g} s"
        self._server = server
        self._cwd = cwd
        self._family = family
        self._group = group
        self._link: Link | None = None
        self._connecting = anyio.Lock()

    async def list_tools(self) -> None:
        from bridge.loop_agent.mcp_link import LinkFailed

        try:
            link = await self._connected()
            self.tools = [McpTool(self, tool) for tool in await link.list_tools()]
        except LinkFailed as error:
            self.problem = f"{self.name!r}: {error}"
            return
        self.problem = None
        for tool in self.tools:
            if not _USUAL_NAME.fullmatch(tool.spec.name):
                log.warning("tool name %r may be refused by the model server", tool.spec.name)

    async def call(self, tool: str, arguments: Json) -> Json:
        """A tool's result as it is on the wire; raises ToolError."""
        from bridge.loop_agent.mcp_link import LinkFailed

        try:
            link = await self._connected()
            return await link.call(tool, arguments)
        except LinkFailed as error:
            raise ToolError(f"MCP server {self.name!r}: {error}") from None

    async def _connected(self) -> "Link":
        from bridge.loop_agent.mcp_link import Link

        async with self._connecting:
            if self._link is None or self._link.lost is not None:
                link = Link(self._server, self._cwd, self._family)
                await link.open(self._group)
                self._link = link
            return self._link

    async def close(self) -> None:
        if self._link is not None:
            await self._link.close(_CLOSING)


class McpTool:
    """A server's tool under its full name."""

    def __init__(self, server: Server, tool: Json) -> None:
        self._server = server
        self._name: str = tool["name"]
        full = f"{server.name}_{self._name}" if server.name else self._name
        description: str = tool.get("description") or ""
        self.spec = Spec(full, description, tool.get("inputSchema") or {"type": "object"})

    def plan(self, arguments: Json) -> Plan:
        return Plan(self.spec.name, "other", lambda: self._run(arguments))

    async def _run(self, arguments: Json) -> Result:
        result = await self._server.call(self._name, arguments)
        blocks: list[Json] = result.get("content") or []
        structured = result.get("structuredContent")
        shown = [{"type": "content", "content": block} for block in blocks]
        content = chat_content(blocks, structured)
        if not shown and isinstance(content, str) and content:
            shown = [text_block(content)]
        raw: Any = result if structured is None else structured
        return Result(content, shown, raw, failed=result.get("isError") is True)


def check(server: McpServer) -> None:
    """Raises RequestFailed (-32602) for a server that lacks what its transport needs."""
    match server.type:
        case "http" | "sse":
            if not server.url:
                raise invalid_params(f"MCP server {server.name!r} has no url")
        case "stdio":
            if not server.command:
                raise invalid_params(f"MCP server {server.name!r} has neither url nor command")
        case other:
            raise invalid_params(f"MCP server {server.name!r} has the unknown type {other!r}")
