"""From a host's config to an agent with an ACP session: spawn, initialize, new, load, resume, fork.

Owns: the order of those steps and what each failure is called. Rules: everything is bounded by
`start_timeout`; an agent whose session could not be made is stopped, unless it asked for
authentication; nothing is started in place of what was asked for (no silent `session/new`).
Called by `bridge.session.session`.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from anyio.abc import TaskGroup

from bridge import __version__
from bridge.agent.client import SessionSink, supported
from bridge.agent.environment import agent_environment
from bridge.agent.supervisor import Agent
from bridge.errors import BridgeError, invalid_request, unsupported
from bridge.io.process import Family
from bridge.log import log
from bridge.session import providers, translate
from bridge.session.faults import failures
from bridge.session.observers import UNOBSERVED, Observers, unnoted
from bridge.session.proxies import Proxies
from bridge.wire import codec, jsonrpc
from protocol_schemas.host import Config

if TYPE_CHECKING:
    from bridge.agent.terminals import Terminals
    from bridge.session.placement import Placement
    from bridge.session.states import State
    from protocol_schemas.profile import Profile

VERSIONS = (1, 2)
"""Of ACP, spoken with agents."""
START_TIMEOUT = 60.0
LEGACY_START_TIMEOUT = 300.0
"""For hosts of generations A and B, which bound the start themselves: verifiers' openclaw harness
has a gateway start within its command, 35 s on a machine at load 6, over 60 s at load 12."""
_SAY_SO = "; say so by config.protocol_version"
_INFO = {"name": "acp-mcp-bridge", "title": "ACP MCP Bridge", "version": __version__}


class Opened(msgspec.Struct):
    """An ACP session on a running agent. `result`: the opening request's result; `told`: the
    system prompt, if the agent has been told it; `profile`: the agent's, if it has one."""

    agent: Agent
    session_id: str
    result: dict[str, Any]
    told: str | None = None
    profile: "Profile | None" = None

    def description(self) -> dict[str, Any]:
        """The result of `open` (HOST_PROTOCOL §4)."""
        initialized = self.agent.client.initialized
        assert initialized is not None
        return {
            "session_id": self.session_id,
            "agent": initialized.agent_info,
            "protocol_version": initialized.protocol_version,
            "capabilities": self.agent.client.advertised,
            "modes": self.result.get("modes"),
            "config_options": self.result.get("configOptions"),
            "auth_methods": initialized.auth_methods or [],
        }


Done = Callable[[Opened], None]
"""Called by the agent's reader, when the response that opens a session passes."""


class Launcher:
    """Starts agents in the daemon's task group."""

    def __init__(
        self,
        group: TaskGroup,
        *,
        family: Family,
        environment: Mapping[str, str],
        on_stderr: Callable[[str, bytes], None],
        on_exit: Callable[[Agent], None],
        room: Callable[[], Awaitable[None]],
        proxies: Proxies,
        observers: Observers = UNOBSERVED,
    ) -> None:
        self._proxies = proxies
        self._group = group
        self._family = family
        self._environment = environment
        self._on_stderr = on_stderr
        self._on_exit = on_exit
        self._room = room
        self._taps = observers.taps
        self._note = observers.note
        self._secret = observers.secret
        self._placed: dict[Agent, Placement] = {}
        self._states: dict[str, State] = {}

    def decided(self, name: str) -> Callable[[str, dict[str, Any]], None] | None:
        """Takes down what was decided in a session: what, and its particulars. None where nothing
        is recorded."""
        note = self._note
        if note is unnoted:
            return None
        return lambda kind, data: note("bridge", kind, data, session=name)

    async def start(
        self, name: str, config: Config, *, native: bool, limit: anyio.CancelScope
    ) -> Agent:
        """A running, initialized agent; raises BridgeError. `limit`: what ends this by its
        deadline, which is put off for an agent whose profile says so, unless the host says."""
        if config.protocol_version not in VERSIONS:
            raise unsupported(
                f"protocol_version {config.protocol_version} is not spoken with agents; 1 and 2 are"
            )
        placed = None if config.agent is None else await self._place(name, config)
        if placed is not None:
            argv, env = placed.argv, placed.environment
            patience = placed.profile.quirks.start_timeout
            if patience is not None and config.start_timeout is None:
                limit.deadline = anyio.current_time() + patience
        else:
            argv = translate.require_command(config)
            env = agent_environment(self._environment, config.env)
            argv, env = await self._proxies.launch(name, config, (argv, env))
        agent = Agent(
            argv,
            env=env,
            cwd=config.cwd or os.getcwd(),
            name=name,
            family=self._family,
            on_stderr=partial(self._on_stderr, name),
            watch_stderr=None if self._taps is None else partial(self._taps("stderr", name), "in"),
            on_exit=self._on_exit,
            room=self._room,
            tap=None if self._taps is None else self._taps("acp", name),
        )
        if placed is not None:
            self._placed = {agent: placed, **self._living()}
            agent.ignores_eof = placed.profile.quirks.ignores_eof
            agent.exits = placed.profile.quirks.exits
        await self._group.start(agent.run)
        self._note("process", "start", _described(agent), session=name)
        try:
            await self._initialize(agent, config, native=native)
            await providers.tell(agent, name, config, self._proxies)
        except BaseException:
            await agent.stop(eof=0.5, term=1.0)
            raise
        return agent

    async def _place(self, name: str, config: Config) -> "Placement":
        """The agent of a profile, its state in the directory that the session has, or gets."""
        from bridge.session import placement, states  # only where an agent is named

        state = self._states.get(name)
        if state is None:
            state = self._states[name] = await states.make(config.agent_options.state)
        return await placement.place(
            name,
            config,
            self._environment,
            self._proxies,
            state,
            cwd=_absolute(config.cwd),
            secret=self._secret,
        )

    def _living(self) -> "dict[Agent, Placement]":
        return {agent: placed for agent, placed in self._placed.items() if agent.death is None}

    async def release(self, name: str) -> None:
        """The session is closed: its agent's state goes, unless a fork shares the agent."""
        state = self._states.pop(name, None)
        if state is not None and state not in self._states.values():
            await state.remove()

    async def _initialize(self, agent: Agent, config: Config, *, native: bool) -> None:
        """The handshake: the version asked for, or version 1 where the agent has no later one."""
        asked, wanted = config.protocol_version, capabilities(config, native=native)
        try:
            with failures(agent, "initialize"):
                result = await agent.client.initialize(asked, wanted, _INFO)
        except BridgeError as error:
            if error.extra.get("agent_code") == jsonrpc.UNSUPPORTED_VERSION:
                error.code = "unsupported"
                spoken = supported(error.data)
                error.message = f"the agent does not speak ACP version {asked}, only {spoken}"
                if 2 in spoken:
                    error.message += _SAY_SO
            raise
        if (answered := result.protocol_version) not in VERSIONS or answered > asked:
            hint = _SAY_SO if answered in VERSIONS else ""
            raise unsupported(
                f"the agent answered with ACP version {answered}; "
                f"it was asked for version {asked}{hint}"
            )

    async def new(self, agent: Agent, config: Config, sink: SessionSink, done: Done) -> None:
        """`session/new`; `done` is called by the agent's reader, right when it is answered."""
        await self._create("session/new", agent, {}, config, sink, done)

    async def fork(
        self, agent: Agent, session_id: str, config: Config, sink: SessionSink, done: Done
    ) -> None:
        """`session/fork` of a session of the same agent."""
        if not agent.client.capabilities.session("fork"):
            raise unsupported("the agent does not support fork: it did not advertise session/fork")
        if (placed := self._placed.get(agent)) is not None:
            self._states[sink.name] = placed.state
        await self._create("session/fork", agent, {"sessionId": session_id}, config, sink, done)

    async def _create(
        self,
        method: str,
        agent: Agent,
        params: dict[str, Any],
        config: Config,
        sink: SessionSink,
        done: Done,
    ) -> None:
        with failures(agent, method):
            await agent.client.create(
                method,
                params | await self._params(agent, config, sink.name),
                sink,
                lambda result: done(self._opened(agent, result["sessionId"], result)),
            )

    async def restore(
        self,
        method: str | None,
        agent: Agent,
        config: Config,
        session_id: str,
        sink: SessionSink,
        done: Done,
    ) -> None:
        """`session/load` or `session/resume`, if the agent can (None: resume, else load); `done` is
        called when the history has been replayed. Raises BridgeError(session_not_found) where the
        agent refuses."""
        can = agent.client.capabilities
        able = {"session/resume": can.session("resume"), "session/load": can.load_session}
        if method is None:
            method = next((name for name in able if able[name]), None)
        if method is None:
            raise unsupported("the agent can neither resume nor load sessions: not advertised")
        if not able[method]:
            raise unsupported(f"the agent does not support {method}: it did not advertise it")
        params = {"sessionId": session_id, **await self._params(agent, config, sink.name)}
        try:
            with failures(agent, method):
                await agent.client.restore(
                    method,
                    params,
                    sink,
                    lambda result: done(self._opened(agent, session_id, result)),
                )
        except BridgeError as error:
            if error.code == "agent_error":
                error.code = "session_not_found"
                error.message = f"session {session_id!r} cannot be restored: {error.message}"
            raise

    def terminals(self, config: Config) -> "Terminals":
        """The terminal service for a session."""
        from bridge.agent.terminals import Terminals  # only where an agent asks for one

        return Terminals(
            self._group,
            family=self._family,
            environment=agent_environment(self._environment, config.env),
            cwd=_absolute(config.cwd),
        )

    async def _params(self, agent: Agent, config: Config, name: str) -> dict[str, Any]:
        can, placed = agent.client.capabilities, self._placed.get(agent)
        params: dict[str, Any] = {"cwd": _absolute(config.cwd), "mcpServers": []}
        if placed is None or placed.takes_mcp:
            params["mcpServers"] = await self._proxies.servers(
                name,
                config,
                translate.mcp_servers(config),
                http=can.mcp_capabilities is not None and can.mcp_capabilities.http,
            )
        if config.additional_directories:
            if not can.session("additionalDirectories"):
                raise unsupported("the agent did not advertise additionalDirectories")
            params["additionalDirectories"] = config.additional_directories
        if placed is not None:
            params |= placed.params(config, can)
        elif config.session_meta:
            params["_meta"] = config.session_meta
        return params

    def _opened(self, agent: Agent, session_id: str, result: dict[str, Any]) -> Opened:
        placed = self._placed.get(agent)
        if placed is None:
            return Opened(agent, session_id, result)
        told = placed.told(agent.client.capabilities)
        return Opened(agent, session_id, result, told, placed.profile)


def _absolute(cwd: str | None) -> str:
    return os.path.abspath(cwd or os.getcwd())


def _described(agent: Agent) -> dict[str, Any]:
    return {"argv": agent.argv, "cwd": agent.cwd, "pid": agent.process.pid}


def capabilities(config: Config, *, native: bool) -> dict[str, Any]:
    """The client capabilities for a config: what the host gave, `session.notices` and
    `session.compaction`, the services the daemon is to serve, and nothing else (HOST §3)."""
    given = dict(config.client_capabilities or {})
    session = dict(codec.mapping(given.get("session")) or {})
    wanted = ["notices", "compaction"]
    if native:
        # Only generation C has an operation that sets them.
        wanted.append("configOptions")
    for name in wanted:
        if session.get(name) is None:
            session[name] = {"boolean": {}} if name == "configOptions" else {}
    given["session"] = session
    if "fs" in config.client_services:
        given["fs"] = {"readTextFile": True, "writeTextFile": True}
    if "terminal" in config.client_services:
        given["terminal"] = True
    if "elicitation" in config.client_services:
        given["elicitation"] = {"form": {}, "url": {}}
    return given


_AGENT = ("command", "agent")
_FIXED = (*_AGENT, "mcp_urls", "mcp_servers", "cwd")
"""What of a session's config no later prompt can change, and would miss if it were let pass."""
_REPEATED = (*_AGENT, "mcp_urls", "system_prompt", "session_meta")
"""What generation A says anew in each prompt, also where it is empty."""


def check_unchanged(given: Config, held: Config, *, native: bool) -> None:
    """Raises BridgeError(invalid_request) for a prompt that wants another agent than the session
    runs with, other tools or another directory: it would not get them. Generation A names all of
    the session's settings in each prompt; B and C may leave them out. To a host of B, whose own
    runner reads but the agent of them once the session is there, other tools are a warning."""
    legacy = given.messages is not None
    for name in _REPEATED if legacy else _FIXED:
        new, old = getattr(given, name) or None, getattr(held, name) or None
        if new == old or not (new or legacy):
            continue
        words = f"config.{name} differs from what the session was started with; "
        if legacy or native or name in _AGENT:
            raise invalid_request(words + "start another daemon or session for it")
        log.warning("%sit goes on with that", words)
