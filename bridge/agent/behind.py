"""What is put behind our proxies of what passes between a client and an agent of others.

Owns: which requests bring an address: those that open a session (`mcpServers`), and
`providers/set` (`baseUrl`). Rules: their values are replaced in place, every other byte of the
line stays; where that cannot be done the line passes as it came, and the log says so. Used by the
active relay and by the component of a chain.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from bridge.log import log
from bridge.wire import codec, jsonrpc
from bridge.wire.json_edit import edit
from bridge.wire.jsonrpc import Request

Json = dict[str, Any]
Servers = Callable[[str, list[Json], bool], Awaitable[list[Json]]]
"""Gives the servers an agent shall see, of (a name for the session, those given, http or not)."""
Model = Callable[[str], Awaitable[str]]
"""Gives the address an agent shall have in place of its provider's."""

_OPENERS = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
_PROVIDER = "providers/set"
_BRINGERS = _OPENERS | {_PROVIDER}


class Behind:
    """One connection's. None: those addresses stay as they are."""

    def __init__(self, servers: Servers | None = None, model: Model | None = None) -> None:
        self._servers = servers
        self._model = model
        self._http = False
        self._opened = 0

    def initialized(self, result: codec.Raw) -> None:
        """Takes the agent's answer to initialize, which says what servers it reaches."""
        self._http = _takes_http(codec.mapping(codec.decode(result)) or {})

    async def changed(self, line: bytes) -> bytes:
        """The client's line as the agent shall have it."""
        message = jsonrpc.parse(line)
        if not isinstance(message, Request) or message.method not in _BRINGERS:
            return line
        params = codec.mapping(codec.decode(message.params)) or {}
        try:
            if message.method in _OPENERS and self._servers is not None:
                return await self._with_servers(line, params, self._servers)
            url = params.get("baseUrl")
            if message.method == _PROVIDER and self._model is not None and isinstance(url, str):
                return with_param(line, "baseUrl", await self._model(url))
        except Exception as error:  # noqa: BLE001 - the request shall reach its agent all the same
            log.error("%s passes as it came: %s", message.method, error)
        return line

    async def _with_servers(self, line: bytes, params: Json, servers: Servers) -> bytes:
        given = params.get("mcpServers")
        if not isinstance(given, list) or not given:
            return line
        self._opened += 1
        shown = await servers(f"relay-{self._opened}", given, self._http)  # pyright: ignore[reportUnknownArgumentType]
        return with_param(line, "mcpServers", shown)


def with_param(line: bytes, name: str, value: Any) -> bytes:
    """The line with another value for a parameter; every other byte stays."""
    bom = codec.BOM if line.startswith(codec.BOM) else b""
    done = edit(line[len(bom) :], "relay", {("params", name): codec.encode(value)})
    return bom + b"".join(done.parts)


def _takes_http(initialized: Json) -> bool:
    """Whether the agent reaches http servers: version 1 says true, version 2 an object."""
    first = codec.mapping(initialized.get("agentCapabilities")) or {}
    if (codec.mapping(first.get("mcpCapabilities")) or {}).get("http") is True:
        return True
    second = codec.mapping(initialized.get("capabilities")) or {}
    mcp = codec.mapping((codec.mapping(second.get("session")) or {}).get("mcp")) or {}
    return mcp.get("http") is not None
