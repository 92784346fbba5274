"""An agent's handshake, taken down: what it says of itself, and how long it takes to say it.

Owns: one short life of an agent for each version it is asked for: start, `initialize`,
`session/new` in an empty directory, `session/close` where there is one, end. Rules: nothing is
prompted; every step is bounded; whatever goes wrong is part of what is told. Called by
`bridge.cli.probe`.
"""

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import msgspec

from bridge import __version__
from bridge.errors import BridgeError, RequestFailed
from bridge.io.process import Family, Process, spawn
from bridge.rpc.connection import Connection, ConnectionEnded
from bridge.wire import codec, jsonrpc
from bridge.wire.jsonrpc import Malformed, Notification, Request

_INFO = {"name": "acp-mcp-bridge", "title": "ACP MCP Bridge", "version": __version__}
_CLIENT: dict[str, Any] = {
    "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}}
}
_CLOSING = 3.0
_EOF, _TERM = 3.0, 2.0
_NOISE_SHOWN = 3


class Probed(msgspec.Struct, omit_defaults=True):
    """What one handshake brought. Times in seconds; `error` says what kept it from going on."""

    asked: int
    version: int | None = None
    agent: dict[str, Any] = {}
    capabilities: list[str] = []
    auth_methods: list[dict[str, Any]] = []
    modes: list[str] = []
    options: list[str] = []
    models: list[str] = []
    initialize: float | None = None
    session: float | None = None
    stop: float | None = None
    exit: str | None = None
    noise: list[str] = []
    updates: list[str] = []
    asked_us: list[str] = []
    """Methods it called before anything was asked of it."""
    error: str | None = None
    session_error: str | None = None


async def probe(
    argv: Sequence[str],
    *,
    version: int,
    env: Mapping[str, str],
    family: Family,
    timeout: float,
    session: bool = True,
) -> Probed:
    """One handshake. Never raises for what an agent does or does not."""
    found = Probed(version)
    began = anyio.current_time()
    with tempfile.TemporaryDirectory(prefix="acp-probe-") as folder:
        try:
            async with spawn(argv, env=env, family=family) as process:
                await _talk(process, found, began, timeout, folder if session else None)
        except BridgeError as error:
            found.error = error.message
    return found


async def _talk(
    process: Process, found: Probed, began: float, timeout: float, folder: str | None
) -> None:
    assert process.stdin is not None
    connection = Connection(process.stdout, process.stdin)
    listener = _Listener(connection, found)

    async def read() -> None:
        await connection.run(listener)
        connection.end("the agent closed its stdout")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(process.stdin.run)
        tasks.start_soon(read)
        await _steps(connection, found, began, timeout, folder)
        before = anyio.current_time()
        await process.stop(eof=_EOF, term=_TERM)
        found.stop = anyio.current_time() - before
        found.exit = str(process.status)
        tasks.cancel_scope.cancel()
    if found.error is not None and (tail := process.stderr_tail().strip()):
        found.error += f"; its stderr ends: {' | '.join(tail[-400:].splitlines())}"


async def _steps(
    connection: Connection, found: Probed, began: float, timeout: float, folder: str | None
) -> None:
    version = found.asked
    params: dict[str, Any] = {"protocolVersion": version}
    if version == 1:
        params |= {"clientCapabilities": _CLIENT, "clientInfo": _INFO}
    else:
        params |= {"capabilities": {}, "info": _INFO}
    result, found.error = await _asked(connection, "initialize", params, timeout)
    if result is None:
        return
    found.initialize = anyio.current_time() - began
    _initialized(found, result)
    if folder is None or found.version not in (1, 2):
        return
    before = anyio.current_time()
    new: dict[str, Any] = {"cwd": folder, "mcpServers": []}
    opened, found.session_error = await _asked(connection, "session/new", new, timeout)
    if opened is None:
        return
    found.session = anyio.current_time() - before
    _opened(found, opened)
    if found.version == 2 or "sessionCapabilities.close" in found.capabilities:
        ident = {"sessionId": opened.get("sessionId")}
        await _asked(connection, "session/close", ident, _CLOSING)


async def _asked(
    connection: Connection, method: str, params: dict[str, Any], timeout: float
) -> tuple[dict[str, Any] | None, str | None]:
    """The result, or why there is none."""
    try:
        with anyio.fail_after(timeout):
            result = codec.mapping(await connection.request(method, params))
    except TimeoutError:
        return None, f"{method} was not answered within {timeout:g} s"
    except RequestFailed as error:
        return None, f"{method} was refused: {error.message} ({error.code})"
    except (ConnectionEnded, codec.JSONError) as error:
        return None, f"{method}: {error}"
    return (result, None) if result is not None else (None, f"{method}: the result is no object")


def _initialized(found: Probed, result: dict[str, Any]) -> None:
    version = result.get("protocolVersion")
    if isinstance(version, int) and not isinstance(version, bool):
        found.version = version
    else:
        said = codec.encode(version).decode()
        found.error = f"initialize: the answer's protocolVersion is no number: {said[:80]}"
    first = found.version == 1
    found.agent = codec.mapping(result.get("agentInfo" if first else "info")) or {}
    capabilities = result.get("agentCapabilities" if first else "capabilities")
    found.capabilities = sorted(_offered(capabilities))
    if codec.mapping(result.get("_meta")) and _is_steered(result["_meta"]):
        found.capabilities.append("_meta.steering")
    found.auth_methods = [item for item in map(codec.mapping, _list(result, "authMethods")) if item]


def _is_steered(meta: dict[str, Any]) -> bool:
    return (codec.mapping(meta.get("steering")) or {}).get("supported") is True


def _opened(found: Probed, result: dict[str, Any]) -> None:
    modes = codec.mapping(result.get("modes")) or {}
    current = modes.get("currentModeId")
    for item in map(codec.mapping, _list(modes, "availableModes")):
        ident = str((item or {}).get("id"))
        found.modes.append(f"{ident} (current)" if ident == current else ident)
    for item in map(codec.mapping, _list(result, "configOptions")):
        option = item or {}
        ident = str(option.get("id", option.get("configId")))
        found.options.append(f"{ident}={option.get('currentValue')}")
        if option.get("category") == "model" or ident == "model":
            found.models = _values(option)


def _values(option: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for item in map(codec.mapping, _list(option, "options")):
        entry = item or {}
        nested = _list(entry, "options")
        found += _values(entry) if nested else [str(entry.get("value"))]
    return found


def _list(fields: dict[str, Any], name: str) -> list[Any]:
    value = fields.get(name)
    return list(value) if isinstance(value, list) else []  # pyright: ignore[reportUnknownArgumentType]


def _offered(capabilities: Any, path: str = "") -> list[str]:
    """The names of what is offered: true, or an object (an empty one, too)."""
    fields = codec.mapping(capabilities) or {}
    names: list[str] = []
    for name, value in fields.items():
        if name == "_meta" or value in (None, False):
            continue
        inner = _offered(value, f"{path}{name}.")
        leaf = codec.mapping(value) is None or not [key for key in value if key != "_meta"]
        names += inner or ([f"{path}{name}"] if leaf else [])
    return names


class _Listener:
    """Takes down what comes unasked; refuses what is asked."""

    def __init__(self, connection: Connection, found: Probed) -> None:
        self._connection = connection
        self._found = found

    def fast(self, line: bytes) -> bool:
        return False

    def request(self, request: Request) -> None:
        self._found.asked_us.append(request.method)
        self._connection.fail(request.id, jsonrpc.METHOD_NOT_FOUND, "not during a probe")

    def notification(self, notification: Notification) -> None:
        kind = notification.method
        params = codec.mapping(codec.decode(notification.params)) or {}
        if update := codec.mapping(params.get("update")):
            kind = str(update.get("sessionUpdate"))
        if kind not in self._found.updates:
            self._found.updates.append(kind)

    def noise(self, noise: Malformed) -> None:
        if len(self._found.noise) < _NOISE_SHOWN:
            self._found.noise.append(noise.line[:200].decode(errors="backslashreplace"))

    async def room(self) -> None:
        """There is always room."""
