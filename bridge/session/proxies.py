"""The two proxies as sessions use them: made when one is needed, ended with the daemon.

Owns: their life (a task of the daemon's group each, so that they are left where they were
entered), and what is put behind them for each session. Rule: a session that needs neither pays for
neither, not even an import. Used by `bridge.session.launcher` and `operations`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import anyio
from anyio.abc import TaskGroup, TaskStatus
from msgspec.structs import replace

from bridge.errors import BridgeError, RequestFailed, UsageError, invalid_request
from bridge.io.process import Family
from bridge.session.observers import UNOBSERVED, Observers
from bridge.wire import codec
from protocol_schemas.host import Config, ModelEndpoint

if TYPE_CHECKING:
    from bridge.mcp.service import McpProxy
    from bridge.model.service import ModelProxy
    from protocol_schemas.model import ModelOptions, ModelTurn
    from protocol_schemas.profile import SideCall

Json = dict[str, Any]
Launch = tuple[list[str], dict[str, str]]


class Told(Protocol):
    """Hears of an attempt (`mcp`) or an exchange (`model`) that has ended."""

    def __call__(self, kind: str, session: str, fields: Json, /) -> None: ...


class Policy(NamedTuple):
    """What the daemon was told of the proxies (`--mcp-proxy`, `--model-proxy`, `--intercept`)."""

    mcp: bool
    model: bool
    intercept: str | None = None


DIRECT = Policy(mcp=False, model=False)


class Proxies:
    """What stands between the agents and their MCP servers and model endpoints."""

    def __init__(
        self,
        group: TaskGroup,
        *,
        family: Family,
        environment: Mapping[str, str],
        told: Told,
        alive: Callable[[str], None],
        policy: Policy,
        observers: Observers = UNOBSERVED,
    ) -> None:
        self._group = group
        self._family = family
        self._environment = environment
        self._told = told
        self._alive = alive
        self._policy = policy
        self._observers = observers
        self._lock = anyio.Lock()
        self._ending = anyio.Event()
        self._mcp: McpProxy | None = None
        self._model: ModelProxy | None = None
        self._aimed: set[str] = set()
        """The sessions whose agent has been told a model's URL when it was started."""
        self._cancelled: dict[str, int] = {}
        """The moments when running turns were cancelled, of those that were."""

    # MCP

    async def servers(
        self, session: str, config: Config, given: list[Json], *, http: bool
    ) -> list[Json]:
        """The `mcpServers` that the agent shall see in place of the given ones.

        `http`: whether the agent takes http servers. Raises BridgeError(invalid_request).
        """
        if not given or not self._policy.mcp or config.mcp_proxy == "off":
            return given
        proxy = await self._mcp_proxy()
        return proxy.mount(session, given, config.mcp, http=http)

    async def call_tool(
        self, session: str, config: Config, given: list[Json], name: str, arguments: Json | None
    ) -> Any:
        """The MCP result of a tool under its full name, `<server>_<tool>`."""
        proxy = await self._for_host(session, given, config)
        return await _result(proxy.call_tool(session, name, arguments))

    async def list_tools(self, session: str, config: Config, given: list[Json]) -> Any:
        """The MCP result of tools/list over all servers of the session."""
        proxy = await self._for_host(session, given, config)
        return await _result(proxy.list_tools(session))

    async def _for_host(self, session: str, given: list[Json], config: Config) -> "McpProxy":
        proxy = await self._mcp_proxy()
        if not proxy.mounted(session):
            if not given:
                raise invalid_request(
                    f"session {session!r} has no MCP servers: give them in config.mcp_urls"
                )
            proxy.mount(session, given, config.mcp)
        return proxy

    async def _mcp_proxy(self) -> "McpProxy":
        async with self._lock:
            proxy = self._mcp
            if proxy is None:
                proxy = self._mcp = await self._group.start(self._run_mcp)
            return proxy

    async def _run_mcp(self, *, task_status: TaskStatus["McpProxy"]) -> None:
        from bridge.mcp.service import McpProxy

        async with McpProxy(
            self._mcp_event,
            on_life=self._alive,
            family=self._family,
            tap=self._observers.mcp,
            heads=self._observers.mcp_heads,
            environment=self._environment,
        ) as proxy:
            task_status.started(proxy)
            await self._ending.wait()

    def _mcp_event(self, fields: Json) -> None:
        session = fields.pop("session")
        self._alive(session)
        self._told("mcp", session, fields)

    # model

    async def launch(self, session: str, config: Config, launch: Launch) -> Launch:
        """The agent's command line and environment, its model endpoints replaced by ours.

        Raises BridgeError(invalid_request) for options or a URL that are wrong.
        """
        argv, env = launch
        self._aimed.discard(session)
        if not self._policy.model or config.model_proxy == "off":
            return launch
        if not any("://" in value for value in (*env.values(), *argv)):
            return launch
        from bridge.model.rewrite import rewrite
        from protocol_schemas.model import ModelOptions

        found: list[str] = []
        rewrite(env, argv, self._policy.intercept, lambda url: found.append(url) or url)
        if not found:
            return launch
        self._aimed.add(session)
        try:
            options = codec.convert(_options(config), ModelOptions)
            proxy = await self._model_proxy()
            env, argv = rewrite(
                env,
                argv,
                self._policy.intercept,
                lambda url: proxy.route(options.upstream or url, session=session, options=options),
            )
        except (codec.JSONError, UsageError) as error:
            raise invalid_request(f"config.model: {error}") from None
        return argv, env

    @property
    def intercept(self) -> str | None:
        """The interception server, for agents that are told their model by a profile."""
        return self._policy.intercept

    async def place_model(
        self, session: str, config: Config, url: str, side_calls: "Sequence[SideCall]" = ()
    ) -> str:
        """The URL that the agent of a profile shall have in place of its model's; raises as
        `launch`."""
        if not self._policy.model or config.model_proxy == "off":
            return url
        self._aimed.add(session)
        from protocol_schemas.model import ModelOptions

        try:
            options = codec.convert(_options(config), ModelOptions)
            proxy = await self._model_proxy()
            return proxy.route(url, session=session, options=options, side_calls=side_calls)
        except (codec.JSONError, UsageError) as error:
            raise invalid_request(f"config.model: {error}") from None

    def untold(self, session: str, config: Config) -> "tuple[str, ModelOptions] | None":
        """The model's URL and options, for an agent that has not been told it; None where it has
        been, where no URL is known, or the proxy is off. Raises BridgeError(invalid_request)."""
        if not self._policy.model or config.model_proxy == "off" or session in self._aimed:
            return None
        from protocol_schemas.model import ModelOptions

        try:
            options = codec.convert(_options(config), ModelOptions)
        except codec.JSONError as error:
            raise invalid_request(f"config.model: {error}") from None
        url = options.upstream or self._policy.intercept
        return None if url is None else (url, options)

    async def _model_proxy(self) -> "ModelProxy":
        async with self._lock:
            proxy = self._model
            if proxy is None:
                proxy = self._model = await self._group.start(self._run_model)
            return proxy

    async def _run_model(self, *, task_status: TaskStatus["ModelProxy"]) -> None:
        from bridge.model.service import ModelProxy

        async with ModelProxy(self._model_event, self._observed()) as proxy:
            task_status.started(proxy)
            await self._ending.wait()

    def _observed(self) -> Any:
        """The model proxy's tap: what passes is a sign of life, and goes to the trace."""
        alive, trace = self._alive, self._observers.exchanges

        def tap(
            kind: str, session: str, exchange: int, direction: Any, data: Json, payload: Any
        ) -> None:
            alive(session)
            if trace is not None:
                trace(kind, session, exchange, direction, data, payload)

        return tap

    def _model_event(self, fields: Json) -> None:
        self._told("model", fields.pop("session"), fields)

    def stopped_by(self, session: str) -> str | None:
        """The limit that ended the session's model calls, by its name in `config.model.limits`."""
        return None if self._model is None else self._model.stopped_by(session)

    def turn_began(self, session: str) -> None:
        """What the session's agent asks its model from now on belongs to a turn."""
        if self._model is not None:
            self._model.turn_began(session)

    def turn_cancelled(self, session: str) -> None:
        """The session's agent is told to cancel its turn: what it calls after that is the next
        turn's."""
        if self._mcp is not None:
            self._cancelled[session] = self._mcp.moment()

    def turn_ended(self, session: str) -> "ModelTurn | None":
        """What the turn's model calls came to; None where they do not pass here. Tool calls that
        an agent leaves running in a turn it was told to cancel are ended."""
        cancelled = self._cancelled.pop(session, None)
        if cancelled is not None and self._mcp is not None:
            self._mcp.turn_cancelled(session, cancelled)
        return None if self._model is None else self._model.turn_ended(session)

    # both

    def forget(self, session: str) -> None:
        """Ends what stands for a session; its name may be used again."""
        if self._mcp is not None:
            self._mcp.forget(session)
        if self._model is not None:
            self._model.forget(session)
        self._aimed.discard(session)

    def end(self) -> None:
        """Ends both proxies; the daemon's group waits for them."""
        self._ending.set()


def _options(config: Config) -> Json:
    """`config.model` as the proxy's options: without what an agent's profile is told of it."""
    given = config.model or {}
    if config.agent is None:
        return given
    return {
        key: value for key, value in given.items() if key not in ModelEndpoint.__struct_fields__
    }


def endpoint_of(config: Config) -> ModelEndpoint:
    """What `config.model` says of the model itself, `upstream` being another word for its URL.

    Raises BridgeError(invalid_request)."""
    given = config.model or {}
    try:
        model = codec.convert(given, ModelEndpoint)
    except codec.JSONError as error:
        raise invalid_request(f"config.model: {error}") from None
    upstream = given.get("upstream")
    return replace(model, base_url=upstream) if isinstance(upstream, str) else model


async def _result(answer: Any) -> Any:
    try:
        return codec.decode(await answer)
    except RequestFailed as error:
        raise BridgeError(
            error.message,
            code="mcp_failed",
            origin="mcp",
            data=error.data,
            extra={"agent_code": error.code},
        ) from None
