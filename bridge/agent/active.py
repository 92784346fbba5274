"""The active relay: as the transparent one, but for the messages that it is there to change.

Owns: which lines those are. Rules: a session's MCP servers are replaced in place (every other byte
of the line stays); a permission request is answered here where there is a policy, and its client
never hears of it, nor of its cancellation; everything else passes as it came, line by line, in
order. The relay has no requests of its own, so ids stay as they are on both sides.
Used by `bridge.cli.acp` when it is given --mcp-proxy or --policy.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from bridge.agent.relay import Relay
from bridge.io.pipes import FdReader, FdWriter
from bridge.io.process import Process
from bridge.log import log
from bridge.rpc.connection import LINE_CEILING, Tap
from bridge.rules import permission
from bridge.wire import codec, json_scan, jsonrpc
from bridge.wire.jsonrpc import Notification, Request, Response
from bridge.wire.lines import LineFramer
from protocol_schemas.acp import PermissionParams

Json = dict[str, Any]
Servers = Callable[[str, list[Json], bool], Awaitable[list[Json]]]
"""Gives the servers an agent shall see, of (a name for the session, those given, http or not)."""
Policy = Literal["allow", "deny"]

_OPENERS = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
_PERMISSION = "session/request_permission"
_CANCEL = "$/cancel_request"


class ActiveRelay(Relay):
    """One client and one agent, with something in between. `tap` sees the agent's pipes,
    `client_tap` the client's."""

    def __init__(
        self,
        process: Process,
        reader: FdReader,
        writer: FdWriter,
        tap: Tap | None,
        *,
        client_tap: Tap | None,
        servers: Servers | None,
        policy: Policy | None,
    ) -> None:
        super().__init__(process, reader, writer, tap)
        self._client_tap = client_tap
        self._servers = servers
        self._policy: Policy | None = policy
        self._http = False
        self._initializing: bytes | None = None
        self._answered: set[bytes] = set()
        """The agent's requests that were answered here."""
        self._opened = 0

    async def _to_agent(self) -> None:
        framer, stdin = LineFramer(LINE_CEILING), self._stdin
        while data := await self._reader.receive():
            if self._client_tap is not None:
                self._client_tap("in", data)
            for line in framer.feed(data):
                self._tell(await self._from_client(line) + b"\n")
            await stdin.drained()
            if stdin.broken:
                self._reader.close()
                return
        if rest := framer.end():
            self._tell(rest)
            await stdin.drained()
        self._stdin.close()
        self._gone.set()

    async def _to_client(self) -> None:
        framer, writer = LineFramer(LINE_CEILING), self._writer
        while data := await self._process.stdout.receive():
            if self._tap is not None:
                self._tap("in", data)
            for line in framer.feed(data):
                if self._passes(line):
                    self._show(line + b"\n")
            await writer.drained()
            self._passed += len(data)
        if rest := framer.end():
            self._show(rest)

    def _tell(self, line: bytes) -> None:
        if self._tap is not None:
            self._tap("out", line)
        self._stdin.post(line)

    def _show(self, line: bytes) -> None:
        if self._client_tap is not None:
            self._client_tap("out", line)
        self._writer.post(line)

    # what the client says

    async def _from_client(self, line: bytes) -> bytes:
        """The line for the agent."""
        message = jsonrpc.parse(line)
        if not isinstance(message, Request):
            return line
        if message.method == "initialize":
            self._initializing = message.id
        if self._servers is None or message.method not in _OPENERS:
            return line
        params = codec.mapping(codec.decode(message.params)) or {}
        given = params.get("mcpServers")
        if not isinstance(given, list) or not given:
            return line
        self._opened += 1
        try:
            shown = await self._servers(f"relay-{self._opened}", given, self._http)  # pyright: ignore[reportUnknownArgumentType]
        except Exception as error:  # noqa: BLE001 - the session shall be made all the same
            log.error("%s: its MCP servers stay as they are: %s", message.method, error)
            return line
        return with_servers(line, shown)

    # what the agent says

    def _passes(self, line: bytes) -> bool:
        """Whether the client gets the line."""
        message = jsonrpc.parse(line)
        if isinstance(message, Response) and message.id == self._initializing:
            result = codec.mapping(codec.decode(message.result)) or {}
            self._http = _takes_http(result)
            self._initializing = None
        elif (
            isinstance(message, Request)
            and message.method == _PERMISSION
            and self._policy is not None
        ):
            return not self._decide(message)
        elif isinstance(message, Notification) and message.method == _CANCEL:
            params = codec.mapping(codec.decode(message.params)) or {}
            return codec.encode(params.get("requestId")) not in self._answered
        return True

    def _decide(self, request: Request) -> bool:
        """Answers a permission request; False if it cannot be read, and is the client's."""
        try:
            params = codec.decode_as(request.params, PermissionParams)
        except codec.JSONError:
            return False
        chosen = permission.choose(params.options, self._policy or "deny")
        self._answered.add(request.id)
        self._tell(jsonrpc.result(request.id, permission.outcome(chosen)))
        return True


def with_servers(line: bytes, servers: list[Json]) -> bytes:
    """The line with other `params.mcpServers`; every other byte stays."""
    start = json_scan.skip_space(line, len(codec.BOM) if line.startswith(codec.BOM) else 0)
    for name in ("params", "mcpServers"):
        found = [m for m in json_scan.members(line, start, {}) if m.key == name]
        start, end = found[-1].start, found[-1].end
        if name == "mcpServers":
            return line[:start] + codec.encode(servers) + line[end:]
    return line


def _takes_http(initialized: Json) -> bool:
    """Whether the agent reaches http servers: version 1 says true, version 2 an object."""
    first = codec.mapping(initialized.get("agentCapabilities")) or {}
    if (codec.mapping(first.get("mcpCapabilities")) or {}).get("http") is True:
        return True
    second = codec.mapping(initialized.get("capabilities")) or {}
    mcp = codec.mapping((codec.mapping(second.get("session")) or {}).get("mcp")) or {}
    return mcp.get("http") is not None
