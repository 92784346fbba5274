"""The client side of ACP: typed calls out, and what comes in brought to its session.

Owns: which sink a session id belongs to, and the messages that came before their session was
known (agents send updates ahead of the `session/new` response: cases 13). Rules: everything is
delivered by the connection's reader, in wire order; a session is registered by the reader itself
when the response passes, so its early messages come right after it and nothing gets in between.
All is version 1 here; an agent that speaks another has a dialect of its own at its connection.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import anyio
import msgspec

from bridge.agent import updates
from bridge.agent.dialect import Dialect
from bridge.agent.updates import Incoming
from bridge.errors import RequestFailed
from bridge.log import log
from bridge.rpc.connection import Connection, Pending, Settle
from bridge.rpc.inbound import CANCEL, Inbound
from bridge.wire import codec, jsonrpc
from bridge.wire.jsonrpc import Malformed, Notification, Request
from protocol_schemas.acp import AgentCapabilities, InitializeResult

EARLY_MESSAGES = 10_000
EARLY_BYTES = 16 * 1024 * 1024
"""Bounds for what is held while a session's id is not known yet; beyond them the oldest go."""
EARLY_SECONDS = 1.0
"""How long a request is held so."""
_NOISE_LINES = 100

Done = Callable[[dict[str, Any]], None]
"""Called by the reader with the result that opens a session."""


class Sink(Protocol):
    """A session, as its agent's messages see it. Called by the reader; none of these may raise."""

    name: str

    def update(self, incoming: Incoming) -> None: ...

    def request(self, request: Request, client: "AgentClient") -> None:
        """One that is served and names this session; it is answered through `client`."""
        ...

    def notification(self, notification: Notification) -> None: ...


class SessionSink(Sink, Protocol):
    """What a session is to its agent's dialect: the rest is for agents that speak version 2."""

    def late(self, incoming: Incoming) -> None:
        """An update of an earlier turn, while another runs."""
        ...

    def begun(self) -> Settle:
        """The agent has begun a turn by itself; gives what takes its end."""
        ...

    def anew(self) -> None:
        """What the running turn has said so far was not of it."""
        ...

    def child(self, session_id: str, incoming: Incoming) -> None:
        """An update of a child session, of a subagent."""
        ...


class AgentClient:
    """One connection to an agent; the `Handler` of its reader."""

    def __init__(
        self,
        connection: Connection,
        inbound: Inbound,
        *,
        name: str,
        room: Callable[[], Awaitable[None]],
    ) -> None:
        self.connection = connection
        self.inbound = inbound
        self.name = name
        self.capabilities = AgentCapabilities()
        self.advertised: dict[str, Any] = {}
        """`agentCapabilities` as the agent sent them."""
        self.initialized: InitializeResult | None = None
        self.dialect = Dialect()
        self._room = room
        self._sinks: dict[str, Sink] = {}
        self._making: list[SessionSink] = []
        self._early: deque[tuple[str, Incoming | Request | Notification]] = deque()
        self._early_bytes = 0
        self.noise_lines = 0

    # calls

    async def initialize(
        self, version: int, capabilities: dict[str, Any], info: dict[str, str]
    ) -> InitializeResult:
        """The handshake; raises RequestFailed, ConnectionEnded or codec.JSONError. An agent that is
        offered version 2 may answer 1, or say that it has 1 only."""
        params: dict[str, Any] = {
            "protocolVersion": version,
            "clientCapabilities": capabilities,
            "clientInfo": info,
        }
        if version == 1:
            result = await self.connection.request("initialize", params)
        else:
            result = await self._negotiate(params)
        self.initialized = codec.convert(result, InitializeResult)
        self.advertised = result.get("agentCapabilities") or {}
        self.capabilities = self.initialized.agent_capabilities or AgentCapabilities()
        return self.initialized

    async def _negotiate(self, params: dict[str, Any]) -> Any:
        """Offers version 2; the result is in version 1's terms whichever was chosen."""
        # Version 2's modules are for those who ask for it.
        from bridge.agent.v2 import shapes
        from bridge.agent.v2.dialect import Dialect2

        try:
            result = await self.connection.request("initialize", shapes.offer(params))
        except RequestFailed as error:
            if error.code != jsonrpc.UNSUPPORTED_VERSION or 1 not in supported(error.data):
                raise
            return await self.connection.request("initialize", params | {"protocolVersion": 1})
        fields = codec.mapping(result)
        if fields is None or fields.get("protocolVersion") != Dialect2.version:
            return result
        self.dialect = Dialect2(self._later)
        self.inbound.withdrawn = {
            "session/request_permission": {"outcome": {"outcome": "cancelled"}}
        }
        return shapes.initialized(fields)

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        async def wait() -> None:
            await anyio.sleep(seconds)
            act()

        self.inbound.group.start_soon(wait)

    def start(self, method: str, params: dict[str, Any]) -> Pending:
        """Sends a request of version 1, in the agent's own terms; raises BridgeError where those
        have no way to say it. Its result is for `read`."""
        return self.connection.start(*self.dialect.call(method, params))

    def read(self, method: str, params: dict[str, Any], result: Any) -> Any:
        """The result of a `start` with these, in version 1's terms."""
        return self.dialect.result(method, params, result)

    def prompt(self, session_id: str, blocks: list[dict[str, Any]], settle: Settle) -> None:
        """Sends a prompt; `settle` gets the end of its turn from the reader, in wire order, as
        version 1's answer. Raises codec.JSONError for what cannot be written."""
        self.dialect.prompt(self.connection, session_id, blocks, settle)

    def cancel(self, session_id: str) -> None:
        """`session/cancel`."""
        self.dialect.cancel(self.connection, session_id)

    def end(self, reason: str) -> None:
        """The agent is gone: settles every open call, and every turn, as failed for `reason`."""
        self.connection.end(reason)
        self.dialect.end(reason)

    async def create(
        self, method: str, params: dict[str, Any], sink: SessionSink, done: Done
    ) -> None:
        """`session/new` or `session/fork`: the `sessionId` of its result is bound to `sink`.

        `done` is called by the reader with the result, before what was held for the session. Raises
        as `Connection.request` does, codec.JSONError for a result without a session id."""

        def bind(value: Any) -> None:
            result = codec.mapping(value) or {}
            session_id = result.get("sessionId")
            if not isinstance(session_id, str):
                raise codec.JSONError("it has no sessionId")
            if session_id in self._sinks:
                raise codec.JSONError(f"its sessionId {session_id!r} is that of another session")
            bound = self._sinks[session_id] = self.dialect.bind(session_id, sink)
            done(self.dialect.result(method, params, result))
            self.dialect.opened(session_id)
            self._deliver_early(session_id, bound)

        self._making.append(sink)
        try:
            await self.connection.start(*self.dialect.call(method, params), bind).result()
        finally:
            self._making.remove(sink)
            if not self._making:
                while self._early:
                    self._drop_oldest()

    async def restore(
        self, method: str, params: dict[str, Any], sink: SessionSink, done: Done
    ) -> None:
        """`session/load` or `session/resume`. Replayed updates reach `sink` before `done` is called
        (by the reader, when the response passes)."""
        session_id = params["sessionId"]

        def opened(value: Any) -> None:
            done(self.dialect.result(method, params, codec.mapping(value) or {}))
            self.dialect.opened(session_id)

        self._sinks[session_id] = self.dialect.bind(session_id, sink)
        try:
            await self.connection.start(*self.dialect.call(method, params), opened).result()
        except BaseException:
            self.forget(session_id)
            raise

    def forget(self, session_id: str) -> None:
        """Messages for the session are dropped from now on."""
        self._sinks.pop(session_id, None)
        self.dialect.forget(session_id)

    @property
    def sessions(self) -> int:
        """How many sessions live on this connection."""
        return len(self._sinks)

    # what comes in (bridge.rpc.connection.Handler)

    def fast(self, line: bytes) -> bool:
        incoming = updates.decode(line)
        if incoming is None:
            return False
        self._update(incoming)
        return True

    def notification(self, notification: Notification) -> None:
        if notification.method == updates.METHOD:
            try:
                incoming = updates.read(notification)
            except codec.JSONError as error:
                self.noise(Malformed(f"an update that cannot be read: {error}", notification.line))
                return
            if incoming is not None:
                self._update(incoming)
            return
        if notification.method in CANCEL:
            self.inbound.cancel(notification)
            return
        session_id = _session_of(notification)
        if session_id is None:
            return
        sink = self._sink(session_id)
        if sink is not None:
            sink.notification(notification)
        else:
            self._hold(session_id, notification)

    def request(self, request: Request) -> None:
        if (objection := self.dialect.objection(request)) is not None:
            self.connection.fail(request.id, jsonrpc.INVALID_REQUEST, objection)
            return
        session_id = _session_of(request) if request.method in self.dialect.served else None
        sink = None if session_id is None else self._sink(session_id)
        if sink is not None:
            sink.request(request, self)
        elif session_id is None or not self._hold(session_id, request):
            self._refuse(request, session_id)

    def _refuse(self, request: Request, session_id: str | None) -> None:
        if request.method not in self.dialect.served:
            code, words = jsonrpc.METHOD_NOT_FOUND, f"method not found: {request.method}"
        elif session_id is None:
            code, words = jsonrpc.INVALID_PARAMS, f"{request.method} needs a sessionId"
        else:
            code, words = jsonrpc.RESOURCE_NOT_FOUND, f"no session {session_id!r} here"
        self.connection.fail(request.id, code, words)

    def noise(self, noise: Malformed) -> None:
        self.noise_lines += 1
        if self.noise_lines <= _NOISE_LINES:
            log.warning(
                "session %r: skipped a line on the agent's stdout (%s): %s",
                self.name,
                noise.reason[:200],
                noise.line[:200].decode(errors="backslashreplace"),
            )
        elif self.noise_lines == _NOISE_LINES + 1:
            log.warning("session %r: more such lines are skipped silently", self.name)

    async def room(self) -> None:
        await self._room()

    def _update(self, incoming: Incoming) -> None:
        session_id = incoming.params.session_id
        sink = self._sinks.get(session_id)
        if sink is not None:
            sink.update(incoming)
        elif (child := self.dialect.child(session_id)) is not None:
            child.update(incoming)
        else:
            self._hold(session_id, incoming)

    def _sink(self, session_id: str) -> Sink | None:
        return self._sinks.get(session_id) or self.dialect.child(session_id)

    def _hold(self, session_id: str, message: Incoming | Request | Notification) -> bool:
        """Keeps a message for a session that is being made; False if none is."""
        if not self._making:
            log.info("session %r: a message for the unknown session %r", self.name, session_id)
            return False
        self._early.append((session_id, message))
        self._early_bytes += len(message.line)
        while len(self._early) > EARLY_MESSAGES or self._early_bytes > EARLY_BYTES:
            self._drop_oldest()
            log.warning("session %r: too much before its session exists; dropped some", self.name)
        if isinstance(message, Request):
            self._later(EARLY_SECONDS, lambda: self._relieve(session_id, message))
        return True

    def _relieve(self, session_id: str, request: Request) -> None:
        """Answers a request that is still held: the agent may wait for that before it answers us.
        It is the session's that is being made, where it can be no other's."""
        if not any(held is request for _, held in self._early):
            return
        self._early = deque(item for item in self._early if item[1] is not request)
        self._early_bytes -= len(request.line)
        if len(self._making) == 1 and not self._sinks:
            self.dialect.bind(session_id, self._making[0]).request(request, self)
        else:
            self._refuse(request, session_id)

    def _drop_oldest(self) -> None:
        session_id, message = self._early.popleft()
        self._early_bytes -= len(message.line)
        if isinstance(message, Request):
            self._refuse(message, session_id)

    def _deliver_early(self, session_id: str, sink: Sink) -> None:
        held, self._early = self._early, deque[tuple[str, Incoming | Request | Notification]]()
        self._early_bytes = 0
        for owner, message in held:
            if owner != session_id:
                self._early.append((owner, message))
                self._early_bytes += len(message.line)
            elif isinstance(message, Incoming):
                sink.update(message)
            elif isinstance(message, Request):
                sink.request(message, self)
            else:
                sink.notification(message)


def supported(data: Any) -> list[Any]:
    """The versions that an agent says it speaks, in the data of its error -32022."""
    versions = (codec.mapping(data) or {}).get("supported")
    return list(versions) if isinstance(versions, list) else []  # pyright: ignore[reportUnknownArgumentType]


class _Addressed(msgspec.Struct, rename="camel", gc=False):
    session_id: str


def _session_of(message: Request | Notification) -> str | None:
    try:
        return codec.decode_as(message.params, _Addressed).session_id
    except codec.JSONError:
        return None
