"""One live connection to an MCP server, by the mcp package's own client.

Owns: the task that enters and leaves the client's contexts, which have to be left where they were
entered. Rules: every failure comes out as a LinkFailed with the words that help; a connection that
breaks ends every call open on it, since the client itself leaves some of them waiting.
Imports mcp at the top: this module is loaded only when there is a server to connect to.
"""

import logging
import os
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import mcp_types
from anyio.abc import TaskGroup, TaskStatus
from mcp import Client
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

import bridge
from bridge.errors import BridgeError
from bridge.io.family import Family
from bridge.log import debugging, log
from bridge.loop_agent.mcp_stdio import ServerEnded, stdio_transport
from bridge.loop_agent.toolbox import Json
from protocol_schemas.agent_requests import McpServer

CALL_TIMEOUT = 600.0
"""Seconds for one tool call."""
_CONNECT = 10.0
_PAGES = 1000
_EVENT = 256 << 20
_RESULT: TypeAdapter[mcp_types.CallToolResult] = TypeAdapter(mcp_types.CallToolResult)
_CLOSED = -32000
_UNWINDING = 1.0
_OVER = "the connection is closed"
_LOST = "the connection was lost during the call ({}); whether it had an effect is not known"
_INFO = mcp_types.Implementation(name="acp-mcp-bridge agent", version=bridge.__version__)


# What goes wrong is said by our own errors; the package's tracebacks are for debugging.
_theirs = logging.getLogger("mcp")
_theirs.handlers, _theirs.propagate = log.handlers, False
_theirs.setLevel(logging.DEBUG if debugging() else logging.CRITICAL)

# What says most about a failure, first.
_TELLING = (ServerEnded, BridgeError, httpx2.HTTPError, OSError, MCPError)


class LinkFailed(Exception):
    """The server cannot be reached, went away, or refused; the text says which and why."""


class Link:
    """`lost`: why the connection is no more; None while it is open."""

    def __init__(self, server: McpServer, cwd: str, family: Family) -> None:
        self._server = server
        self._cwd = cwd
        self._family = family
        self._session: ClientSession | None = None
        self._calls: set[anyio.CancelScope] = set()
        self._closing = anyio.Event()
        self._closed = anyio.Event()
        self._scope = anyio.CancelScope()
        self.lost: str | None = None

    async def open(self, group: TaskGroup) -> None:
        """Connects, in a task of `group`; raises LinkFailed."""
        try:
            await group.start(self._own, name=f"MCP {self._server.name}")
        except Exception as error:  # noqa: BLE001 - groups of whatever the transport raised
            raise LinkFailed(f"cannot connect to {self._address()}: {words(error)}") from None

    async def _own(self, *, task_status: TaskStatus[None]) -> None:
        """The connection's life."""
        try:
            with self._scope:
                async with self._http() as http, self._client(http) as client:
                    self._session = client.session
                    task_status.started()
                    await self._closing.wait()
        except Exception as error:
            if self._session is None:
                raise
            log.debug("MCP server %r lost", self._server.name, exc_info=True)
            self.lost = words(error)
        finally:
            self.lost = self.lost or _OVER
            self._closed.set()
            for scope in self._calls:
                scope.cancel()

    def _address(self) -> str:
        """Where the server is, without what may be secret about it."""
        if self._server.type == "stdio":
            return self._server.command or ""
        parts = urlsplit(self._server.url or "")
        return f"{parts.scheme}://{parts.hostname}:{parts.port or ''}{parts.path}"

    def _http(self) -> httpx2.AsyncClient:
        """The HTTP client of this connection (unused by stdio servers)."""
        parts = urlsplit(self._server.url or "")
        return httpx2.AsyncClient(
            headers={header.name: header.value for header in self._server.headers or ()},
            timeout=httpx2.Timeout(CALL_TIMEOUT, connect=_CONNECT),
            # Loading the certificates takes 50 ms, which a plain http:// URL has no use for.
            verify=parts.scheme == "https",
            trust_env=parts.hostname not in ("localhost", "127.0.0.1", "::1"),
        )

    def _sse_http(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return self._http()

    def _client(self, http: httpx2.AsyncClient) -> Client:
        server = self._server
        transport: AbstractAsyncContextManager[Any]
        match server.type:
            case "http":
                transport = streamable_http_client(
                    server.url or "", http_client=http, max_sse_event_size=_EVENT
                )
            case "sse":
                transport = sse_client(server.url or "", httpx_client_factory=self._sse_http)
            case _:
                cwd = self._cwd if os.path.isdir(self._cwd) else None
                transport = stdio_transport(server, cwd, self._family)
        mode = "legacy" if server.type == "sse" else "auto"
        return Client(transport, mode=mode, client_info=_INFO, cache=None)

    async def list_tools(self) -> list[Json]:
        """All pages of the server's tools, as on the wire; raises LinkFailed."""
        tools: list[Json] = []
        cursor: str | None = None
        seen: set[str | None] = {None, ""}
        for _ in range(_PAGES):
            params = mcp_types.PaginatedRequestParams(cursor=cursor)
            request = mcp_types.ListToolsRequest(params=params)
            page = await self._send(request, TypeAdapter(mcp_types.ListToolsResult))
            tools += [tool.model_dump(by_alias=True, exclude_none=True) for tool in page.tools]
            cursor = page.next_cursor
            if cursor in seen:
                break
            seen.add(cursor)
        return tools

    async def call(self, tool: str, arguments: Json) -> Json:
        """A tool's result, as on the wire; raises LinkFailed."""
        params = mcp_types.CallToolRequestParams(name=tool, arguments=arguments)
        # Not call_tool(), which lists the tools behind every call.
        result = await self._send(mcp_types.CallToolRequest(params=params), _RESULT)
        return result.model_dump(by_alias=True, exclude_none=True, mode="json")

    async def _send(self, request: Any, kind: TypeAdapter[Any]) -> Any:
        if self.lost is not None or self._session is None:
            raise LinkFailed(self.lost or "the connection is not open")
        scope = anyio.CancelScope()
        self._calls.add(scope)
        try:
            with scope:
                return await self._session.send_request(
                    request, kind, request_read_timeout_seconds=CALL_TIMEOUT
                )
        except MCPError as error:
            if error.code == _CLOSED:
                raise LinkFailed(await self._why_lost(error)) from None
            raise LinkFailed(words(error)) from None
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, ValidationError) as error:
            raise LinkFailed(words(error)) from None
        finally:
            self._calls.discard(scope)
        raise LinkFailed(_LOST.format(self.lost))

    async def _why_lost(self, error: MCPError) -> str:
        """The cause of an ended stream, which shows only when the client's contexts are left."""
        self._closing.set()
        with anyio.move_on_after(_UNWINDING):
            await self._closed.wait()
        cause = words(error) if self.lost in (None, _OVER) else self.lost
        self.lost = cause
        return _LOST.format(cause)

    async def close(self, within: float) -> None:
        """Ends the connection properly, or after `within` seconds by force."""
        self._closing.set()
        with anyio.move_on_after(within):
            await self._closed.wait()
        self._scope.cancel()


def words(error: BaseException) -> str:
    """The cause in a group of exceptions, as one line."""
    leaves = _leaves(error)
    best = next((leaf for kind in _TELLING for leaf in leaves if isinstance(leaf, kind)), leaves[0])
    said = str(best) if isinstance(best, BridgeError | ServerEnded) else ""
    return " ".join((said or f"{type(best).__name__}: {best}").split())


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for part in error.exceptions for leaf in _leaves(part)]  # pyright: ignore[reportUnknownVariableType,reportUnknownMemberType,reportUnknownArgumentType]
    return [error]
