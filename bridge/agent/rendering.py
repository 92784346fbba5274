"""A profile, filled in for one session: command line, environment, files and `_meta`. Pure but for
a free port that it looks for where a template asks for one.

Rule: what a host asks for and the profile has no place for is refused by name. Called by
`bridge.session.placement`, which writes the files and starts the agent.
"""

import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bridge.agent import placeholders
from bridge.agent.endpoint import Endpoint
from bridge.agent.placeholders import ABSENT, Values
from bridge.errors import UsageError, unsupported
from bridge.wire import codec, toml_text
from protocol_schemas.profile import File, Profile

Json = dict[str, Any]
_ITS_PLACES = {"prefix", "bin", "node"}


class Places(NamedTuple):
    """Where an agent's programs are. `node`: its own node's directory, which goes first on PATH."""

    bin: Path
    prefix: Path | None = None
    node: Path | None = None


class Inputs(NamedTuple):
    """What a session gives. `servers`: ACP's `mcpServers`, as the agent shall see them; `places`
    raises UsageError where the agent is not installed; `command` replaces the profile's."""

    endpoint: Endpoint
    state: Path
    cwd: str
    session: str
    places: Callable[[], Places]
    system_prompt: str | None = None
    servers: Sequence[Json] = ()
    disabled_tools: Sequence[str] = ()
    command: Sequence[str] = ()


class Written(NamedTuple):
    """A file to be written, its path relative to the state directory."""

    path: str
    data: bytes
    executable: bool


class Rendered(NamedTuple):
    """What an agent is started with. `meta`: the `_meta` of session/new, without and with the
    system prompt."""

    argv: list[str]
    environment: dict[str, str]
    files: list[Written]
    meta: Json
    meta_with_system: Json | None
    system_told: bool
    """Whether the system prompt stands in the command, the environment or a file."""
    node: Path | None
    """The directory that goes first on PATH."""


def render(profile: Profile, given: Inputs) -> Rendered:
    """Raises UsageError, BridgeError(unsupported)."""
    at_start = placeholders.everywhere(profile, with_command=not given.command)
    in_meta = placeholders.used(profile.session.meta)
    if given.disabled_tools and not {"disabled_tools", "disabled_rules"} & (at_start | in_meta):
        raise unsupported(
            f"the agent {profile.name!r} has no way of switching tools off: "
            "config.agent_options.disabled_tools"
        )
    places = cache(given.places)
    values = _values(profile, given, places)
    argv, environment = _launch(profile, given, values)
    silent = {**values, "system_prompt": lambda: None}
    return Rendered(
        argv=argv,
        environment=environment,
        files=[
            Written(file.path, data, file.executable)
            for file in profile.files
            if (data := _contents(file, values)) is not None
        ],
        meta=_table(placeholders.fill(profile.session.meta, silent)),
        meta_with_system=_table(placeholders.fill(profile.session.meta, values))
        if "system_prompt" in in_meta
        else None,
        system_told=bool(given.system_prompt) and "system_prompt" in at_start,
        node=places().node if _ITS_PLACES & at_start else None,
    )


def _launch(profile: Profile, given: Inputs, values: Values) -> tuple[list[str], dict[str, str]]:
    environment = {
        name: placeholders.as_text(value) if isinstance(template, str) else _json(value)
        for name, template in profile.launch.environment.items()
        if (value := placeholders.fill(template, values)) is not ABSENT
    }
    if not profile.launch.task:
        return list(given.command) or _words(profile, values), environment
    from bridge.agent import task_program  # only for the few of this kind

    prompt = f"prompt-{secrets.token_hex(16)}"
    command = [word.replace("${prompt}", prompt) for word in given.command]
    command = command or _words(profile, {**values, "prompt": lambda: prompt})
    task = {"command": command, "prompt": prompt, "exits": profile.quirks.exits}
    environment[task_program.VARIABLE] = _json(task)
    return [sys.executable, "-I", "-S", task_program.__file__], environment


def _words(profile: Profile, values: Values) -> list[str]:
    words = placeholders.fill(profile.launch.command, values)
    return [placeholders.as_text(word) for word in words]


def program(profile: Profile) -> str | None:
    """The name of the program that it starts, to be looked for on PATH where none is installed."""
    launch = profile.launch
    for word in [*launch.command, *launch.environment.values()]:
        if isinstance(word, str) and word.startswith("${bin}/"):
            return word.removeprefix("${bin}/")
    return None


def _contents(file: File, values: Values) -> bytes | None:
    if file.executable:
        return (file.text or "").encode()
    if file.text is not None:
        text = placeholders.fill(file.text, values)
        return None if text is ABSENT else placeholders.as_text(text).encode()
    if file.json is not None:
        return f"{_json(_table(placeholders.fill(file.json, values)))}\n".encode()
    return toml_text.dumps(_table(placeholders.fill(file.toml, values))).encode()


def _table(filled: Any) -> Json:
    return {} if filled is ABSENT else filled


def _json(value: Any) -> str:
    return codec.encode(value).decode()


def _values(profile: Profile, given: Inputs, places: Callable[[], Places]) -> Values:
    endpoint = given.endpoint

    def prefix() -> str:
        found = places().prefix
        if found is None:
            raise UsageError(f"the agent {profile.name!r} is on PATH only: ${{prefix}} is nowhere")
        return str(found)

    def node() -> str:
        found = places().node
        return "node" if found is None else str(found / "node")

    def version() -> str | None:
        return None if profile.install is None else next(iter(profile.install.packages.values()))

    known: dict[str, Callable[[], Any]] = {
        "prefix": prefix,
        "bin": lambda: str(places().bin),
        "node": node,
        "version": version,
        "state": lambda: str(given.state),
        "cwd": lambda: given.cwd,
        "session": lambda: given.session,
        "port": cache(_free_port),
        "token": cache(lambda: secrets.token_hex(16)),
        "model.url": lambda: endpoint.url,
        "model.key": lambda: endpoint.key,
        "model.name": lambda: endpoint.name,
        "model.wire": lambda: endpoint.wire,
        "system_prompt": lambda: given.system_prompt or None,
        "mcp.servers": lambda: _servers(profile, given.servers),
        "disabled_tools": lambda: list(given.disabled_tools) or None,
        "disabled_rules": lambda: _rules(profile, given.disabled_tools),
    }
    words = profile.wires[endpoint.wire].values
    for name in {name for use in profile.wires.values() for name in use.values}:
        known[f"wire.{name}"] = lambda name=name: words.get(name)
    return known


def _servers(profile: Profile, servers: Sequence[Json]) -> Json:
    """Each server by its name, as the agent's own settings describe one."""
    found: Json = {}
    for server in servers:
        if server.get("type") != "http":
            raise unsupported(
                f"the agent {profile.name!r} takes MCP servers over http only: "
                f"{server.get('name')!r} is none, and no proxy stands before it"
            )
        found[server["name"]] = placeholders.fill(profile.mcp.server, _of_server(server))
    return found


def _of_server(server: Json) -> Values:
    headers: list[dict[str, str]] = server.get("headers") or []
    return {
        "server.name": lambda: server["name"],
        "server.url": lambda: server["url"],
        "server.headers": lambda: {pair["name"]: pair["value"] for pair in headers} or None,
    }


def _rules(profile: Profile, tools: Sequence[str]) -> Any:
    rule = profile.tools.rule
    if isinstance(rule, bool):
        return dict.fromkeys(tools, rule) or None
    return [placeholders.fill(rule, {"tool": lambda tool=tool: tool}) for tool in tools] or None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
