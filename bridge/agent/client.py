"""The client side of ACP version 1: typed calls out, and what comes in brought to its session.

Owns: which sink a session id belongs to, and the messages that came before their session was
known (agents send updates ahead of the `session/new` response: cases 13). Rules: everything is
delivered by the connection's reader, in wire order; a session is registered by the reader itself
when the response passes, so its early messages come right after it and nothing gets in between.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from bridge.agent import updates
from bridge.agent.updates import Incoming
from bridge.log import log
from bridge.rpc.connection import Connection
from bridge.rpc.inbound import CANCEL, Inbound
from bridge.wire import codec, jsonrpc
from bridge.wire.jsonrpc import Malformed, Notification, Request
from protocol_schemas.acp import AgentCapabilities, InitializeResult

EARLY_MESSAGES = 10_000
EARLY_BYTES = 16 * 1024 * 1024
"""Bounds for what is held while a session's id is not known yet; beyond them the oldest go."""
_NOISE_LINES = 100

SERVED = frozenset(
    {
        "session/request_permission",
        "fs/read_text_file",
        "fs/write_text_file",
        "terminal/create",
        "terminal/output",
        "terminal/wait_for_exit",
        "terminal/kill",
        "terminal/release",
        "elicitation/create",
    }
)
"""The requests a client may get in ACP version 1; any other is refused with -32601 at once."""


Done = Callable[[dict[str, Any]], None]
"""Called by the reader with the result that opens a session."""


class Sink(Protocol):
    """A session, as its agent's messages see it. Called by the reader; none of these may raise."""

    name: str

    def update(self, incoming: Incoming) -> None: ...

    def request(self, request: Request, client: "AgentClient") -> None:
        """One of SERVED that names this session; it is answered through `client`."""
        ...

    def notification(self, notification: Notification) -> None: ...


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
        self._room = room
        self._sinks: dict[str, Sink] = {}
        self._opening = 0
        self._early: deque[tuple[str, Incoming | Request | Notification]] = deque()
        self._early_bytes = 0
        self.noise_lines = 0

    # calls

    async def initialize(
        self, version: int, capabilities: dict[str, Any], info: dict[str, str]
    ) -> InitializeResult:
        """The handshake; raises RequestFailed, ConnectionEnded or codec.JSONError."""
        result = await self.connection.request(
            "initialize",
            {"protocolVersion": version, "clientCapabilities": capabilities, "clientInfo": info},
        )
        self.initialized = codec.convert(result, InitializeResult)
        self.advertised = result.get("agentCapabilities") or {}
        self.capabilities = self.initialized.agent_capabilities or AgentCapabilities()
        return self.initialized

    async def create(self, method: str, params: dict[str, Any], sink: Sink, done: Done) -> None:
        """`session/new` or `session/fork`: the `sessionId` of its result is bound to `sink`.

        `done` is called by the reader with the result, before what was held for the session. Raises
        as `Connection.request` does, codec.JSONError for a result without a session id."""

        def bind(value: Any) -> None:
            result = codec.mapping(value) or {}
            session_id = result.get("sessionId")
            if not isinstance(session_id, str):
                raise codec.JSONError("it has no sessionId")
            self._sinks[session_id] = sink
            done(result)
            self._deliver_early(session_id, sink)

        self._opening += 1
        try:
            await self.connection.start(method, params, bind).result()
        finally:
            self._opening -= 1
            if not self._opening:
                while self._early:
                    self._drop_oldest()

    async def restore(self, method: str, params: dict[str, Any], sink: Sink, done: Done) -> None:
        """`session/load` or `session/resume`. Replayed updates reach `sink` before `done` is called
        (by the reader, when the response passes)."""
        session_id = params["sessionId"]
        self._sinks[session_id] = sink
        try:
            await self.connection.start(
                method, params, lambda value: done(codec.mapping(value) or {})
            ).result()
        except BaseException:
            self._sinks.pop(session_id, None)
            raise

    def forget(self, session_id: str) -> None:
        """Messages for the session are dropped from now on."""
        self._sinks.pop(session_id, None)

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
        sink = self._sinks.get(session_id)
        if sink is not None:
            sink.notification(notification)
        else:
            self._hold(session_id, notification)

    def request(self, request: Request) -> None:
        session_id = _session_of(request) if request.method in SERVED else None
        sink = None if session_id is None else self._sinks.get(session_id)
        if sink is not None:
            sink.request(request, self)
        elif session_id is None or not self._hold(session_id, request):
            self._refuse(request, session_id)

    def _refuse(self, request: Request, session_id: str | None) -> None:
        if request.method not in SERVED:
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
        else:
            self._hold(session_id, incoming)

    def _hold(self, session_id: str, message: Incoming | Request | Notification) -> bool:
        """Keeps a message for a session that is being made; False if none is."""
        if not self._opening:
            log.info("session %r: a message for the unknown session %r", self.name, session_id)
            return False
        self._early.append((session_id, message))
        self._early_bytes += len(message.line)
        while len(self._early) > EARLY_MESSAGES or self._early_bytes > EARLY_BYTES:
            self._drop_oldest()
            log.warning("session %r: too much before its session exists; dropped some", self.name)
        return True

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


class _Addressed(msgspec.Struct, rename="camel", gc=False):
    session_id: str


def _session_of(message: Request | Notification) -> str | None:
    try:
        return codec.decode_as(message.params, _Addressed).session_id
    except codec.JSONError:
        return None
