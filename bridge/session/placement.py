"""An agent named by its profile, made ready to be started: its endpoints, its files, its state.

Owns: the order of those steps (the proxies' URLs must be known before a file is written that names
them). Rules: files are the user's alone; what the host gives in `config.env` and
`config.session_meta` wins over the profile. Imported only for a `config.agent`; called by
`bridge.session.launcher`.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio.to_thread

from bridge.agent import installed, profile, rendering, versions
from bridge.agent.endpoint import NO_KEY, endpoint
from bridge.agent.environment import agent_environment
from bridge.agent.rendering import Inputs, Places, Rendered, Written
from bridge.errors import BridgeError, UsageError, invalid_request, unsupported
from bridge.session import translate
from bridge.session.proxies import Proxies, endpoint_of
from bridge.session.states import State
from bridge.wire import codec
from protocol_schemas.acp import AgentCapabilities
from protocol_schemas.host import Config
from protocol_schemas.profile import Profile

Json = dict[str, Any]


class Placement(NamedTuple):
    """An agent that can be started."""

    profile: Profile
    argv: list[str]
    environment: dict[str, str]
    rendered: Rendered
    system_prompt: str | None
    state: State

    @property
    def takes_mcp(self) -> bool:
        """Whether `session/new` tells it of MCP servers."""
        return self.profile.mcp.via == "acp"

    def told(self, can: AgentCapabilities) -> str | None:
        """The system prompt, if the agent is told it other than by the first turn's text."""
        way = (
            self.rendered.system_told
            or can.session("systemPrompt")
            or self.rendered.meta_with_system is not None
        )
        return self.system_prompt if way else None

    def params(self, config: Config, can: AgentCapabilities) -> Json:
        """What `session/new`, `load`, `resume` and `fork` are given beside cwd and servers."""
        params: Json = {}
        meta = self.rendered.meta
        if self.system_prompt and not self.rendered.system_told:
            if can.session("systemPrompt"):
                content = [{"type": "text", "text": self.system_prompt}]
                params["systemPrompt"] = {"mode": "append", "content": content}
            elif self.rendered.meta_with_system is not None:
                meta = self.rendered.meta_with_system
        if meta := _merged(meta, config.session_meta or {}):
            params["_meta"] = meta
        return params


async def place(
    name: str,
    config: Config,
    inherited: Mapping[str, str],
    proxies: Proxies,
    state: State,
    *,
    cwd: str,
    secret: Callable[[str, str], None] | None = None,
) -> Placement:
    """Makes an agent ready; `name`: the session's, `inherited`: the daemon's environment, `secret`
    hears of the key. Raises BridgeError."""
    try:
        return await _place(name, config, inherited, proxies, state, cwd, secret)
    except UsageError as error:
        raise invalid_request(f"config.agent: {error}") from None
    except OSError as error:
        raise BridgeError(f"the state directory {state.path}: {error}") from None


async def _place(
    name: str,
    config: Config,
    inherited: Mapping[str, str],
    proxies: Proxies,
    state: State,
    cwd: str,
    secret: Callable[[str, str], None] | None,
) -> Placement:
    chosen = await anyio.to_thread.run_sync(_chosen, config, inherited)
    environment = agent_environment(inherited, config.env)
    for variable in set(chosen.launch.unset) - set(config.env):
        environment.pop(variable, None)
    told = endpoint(chosen, endpoint_of(config), environment, proxies.intercept)
    if secret is not None and told.key != NO_KEY:
        secret("model", told.key)
    _, environment = await proxies.launch(name, config, ([], environment))
    url = await proxies.place_model(name, config, told.url, chosen.side_calls)
    told = told._replace(url=url)
    servers = translate.mcp_servers(config)
    if chosen.mcp.via == "none" and servers:
        raise unsupported(f"the agent {chosen.name!r} takes no MCP servers")
    if chosen.mcp.via == "file":
        servers = await proxies.servers(name, config, servers, http=True)
    inputs = Inputs(
        told,
        state.path,
        cwd,
        name,
        partial(_places, chosen, config, inherited),
        config.system_prompt,
        servers,
        config.agent_options.disabled_tools,
        config.command,
    )
    rendered = await anyio.to_thread.run_sync(_prepare, chosen, inputs)
    environment |= {k: v for k, v in rendered.environment.items() if k not in config.env}
    if rendered.node is not None:
        environment["PATH"] = f"{rendered.node}{os.pathsep}{environment.get('PATH', os.defpath)}"
    return Placement(chosen, rendered.argv, environment, rendered, config.system_prompt, state)


def _chosen(config: Config, environment: Mapping[str, str]) -> Profile:
    """The profile that is named, in the versions that are asked for."""
    found = profile.load(config.agent or "", environment)
    asked = dict(config.agent_options.packages)
    if config.agent_options.version is not None and found.install is not None:
        asked.setdefault(next(iter(found.install.packages)), config.agent_options.version)
    elif config.agent_options.version is not None:
        raise UsageError(f"the profile {found.name!r} installs nothing: it takes no version")
    return versions.with_packages(found, asked)


def _places(chosen: Profile, config: Config, environment: Mapping[str, str]) -> Places:
    """Where its programs are: beside the one that config.command names, in our own install, or
    where PATH has them (but no other version in the place of one that was asked for)."""
    program = rendering.program(chosen)
    for word in config.command:
        if os.path.basename(word) == program != word:
            return Places(Path(word).absolute().parent)
    found = installed.find(chosen, environment)
    if found is not None:
        return Places(found.prefix / "node_modules/.bin", found.prefix, found.node)
    on_path = shutil.which(program or "", path=environment.get("PATH"))
    options = config.agent_options
    if on_path is None or options.version is not None or options.packages:
        found = installed.require(chosen, environment, named=config.agent or chosen.name)
        return Places(found.prefix / "node_modules/.bin", found.prefix, found.node)
    return Places(Path(on_path).absolute().parent)


def _prepare(chosen: Profile, inputs: Inputs) -> Rendered:
    """The profile filled in, its files written; one that it has nothing for is not left either."""
    rendered = rendering.render(chosen, inputs)
    for path in {file.path for file in chosen.files} - {file.path for file in rendered.files}:
        (inputs.state / path).unlink(missing_ok=True)
    for file in rendered.files:
        _write(inputs.state / file.path, file)
    return rendered


def _write(path: Path, file: Written) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = 0o700 if file.executable else 0o600
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with open(descriptor, "wb") as opened:
        os.fchmod(descriptor, mode)
        opened.write(file.data)


def _merged(base: Json, over: Json) -> Json:
    """Both, table by table; `over` wins."""
    merged = dict(base)
    for key, value in over.items():
        held, given = codec.mapping(merged.get(key)), codec.mapping(value)
        merged[key] = value if held is None or given is None else _merged(held, given)
    return merged
