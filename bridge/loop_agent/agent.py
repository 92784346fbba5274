"""The agent's side of ACP version 1: every method, by name.

Owns: what is true of the whole connection (initialized or not) and the table of methods. Rules:
- Requests are begun in wire order: what a method does before it has to wait is done before the next
  line is read, so a cancel or a steer finds the prompt that was sent before it.
- Capabilities say what is in the table, no more.
Driven by `bridge.loop_agent.main`.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio.to_thread
from anyio.abc import TaskGroup

import bridge
from bridge.errors import RequestFailed
from bridge.log import log
from bridge.loop_agent.failures import invalid_params, invalid_request
from bridge.loop_agent.front import Front, Json
from bridge.loop_agent.model import Model
from bridge.loop_agent.session import MODES, Session
from bridge.loop_agent.sessions import Sessions
from bridge.loop_agent.store import Store
from bridge.loop_agent.turn import Limits, Turn
from bridge.rpc.connection import Connection
from bridge.rpc.inbound import CANCEL, Inbound
from bridge.wire import codec, jsonrpc
from bridge.wire.jsonrpc import Malformed, Notification, Request
from protocol_schemas.agent_requests import (
    Initialize,
    ListSessions,
    NewSession,
    OfSession,
    OpenSession,
    Prompt,
    SetMode,
    Steering,
)

T = TypeVar("T")
Waiting = Callable[[], Awaitable[Json]]
Method = Callable[[Any], Json | Waiting]
"""Takes the raw params; gives the result, or what is still to be waited for."""

PROTOCOL_VERSION = 1


class Agent:
    """The `Handler` of the connection to the client."""

    def __init__(
        self,
        connection: Connection,
        group: TaskGroup,
        front: Front,
        sessions: Sessions,
        store: Store,
        model: Model,
        limits: Limits,
    ) -> None:
        self._connection = connection
        self._inbound = Inbound(connection, group)
        self._front = front
        self._sessions = sessions
        self._store = store
        self._model = model
        self._limits = limits
        self._initialized = False
        self._methods: dict[str, Method] = {
            "initialize": self._initialize,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/set_mode": self._set_mode,
            "session/prompt": self._prompt,
            "_session/steering": self._steer,
        }

    # The connection's Handler

    def fast(self, line: bytes) -> bool:
        return False

    def request(self, request: Request) -> None:
        if self._inbound.refuses(request):
            return
        try:
            outcome = self._begin(request)
        except RequestFailed as error:
            code = jsonrpc.INTERNAL_ERROR if error.code is None else error.code
            self._connection.fail(request.id, code, error.message, error.data)
            return
        except Exception as error:  # noqa: BLE001 - the reader must live, the client get an answer
            log.exception("%s failed", request.method)
            words = f"{type(error).__name__}: {error}".splitlines()[0]
            self._connection.fail(request.id, jsonrpc.INTERNAL_ERROR, words)
            return
        if callable(outcome):
            waiting = outcome

            async def answer(method: str, params: Any) -> Json:
                return await waiting()

            self._inbound.start(request, answer)
        else:
            self._connection.reply(request.id, outcome)

    def notification(self, notification: Notification) -> None:
        if notification.method in CANCEL:
            self._inbound.cancel(notification)
        elif notification.method == "session/cancel":
            try:
                params = read(notification.params, OfSession)
            except RequestFailed as error:
                log.warning("session/cancel: %s", error.message)
                return
            session = self._sessions.get(params.session_id)
            if session is not None and session.turn is not None:
                session.turn.cancel()

    def noise(self, noise: Malformed) -> None:
        log.warning("from the client: %s: %.200r", noise.reason, noise.line)
        if noise.id is not None:
            return  # the connection has answered it
        try:
            message = codec.mapping(codec.decode(noise.line)) or {}
        except codec.JSONError:
            self._connection.fail(b"null", jsonrpc.PARSE_ERROR, "not JSON in UTF-8")
            return
        if "result" not in message and "error" not in message:
            self._connection.fail(b"null", jsonrpc.INVALID_REQUEST, noise.reason)

    async def room(self) -> None:
        """The client may send as it likes: what it sends waits for nothing."""

    def _begin(self, request: Request) -> Json | Waiting:
        method = self._methods.get(request.method)
        if method is None:
            raise RequestFailed(jsonrpc.METHOD_NOT_FOUND, f"no method {request.method!r}")
        if not self._initialized and request.method != "initialize":
            raise invalid_request(f"{request.method} came before initialize")
        return method(request.params)

    # Methods that are answered at once

    def _initialize(self, raw: Any) -> Json:
        read(raw, Initialize)
        self._initialized = True
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": True},
                "sessionCapabilities": {
                    "list": {},
                    "resume": {},
                    "fork": {},
                    "close": {},
                    "delete": {},
                    "systemPrompt": {"mode": {"override": {}}},
                },
            },
            "agentInfo": {
                "name": "acp-mcp-bridge",
                "title": "acp-mcp-bridge embedded agent",
                "version": bridge.__version__,
            },
            "authMethods": [],
            "_meta": {"steering": {"supported": True}},
        }

    def _set_mode(self, raw: Any) -> Json:
        params = read(raw, SetMode)
        session = self._sessions.find(params.session_id)
        session.set_mode(params.mode_id)
        return {}

    def _steer(self, raw: Any) -> Json:
        params = read(raw, Steering)
        session = self._sessions.find(params.session_id)
        steering = codec.mapping((params.meta or {}).get("steering")) or {}
        if steering.get("idleBehavior", "promptRequired") != "promptRequired":
            raise invalid_params("_meta.steering.idleBehavior can only be promptRequired")
        if session.turn is None or not session.turn.steerable:
            return {"outcome": "promptRequired", "reason": "noRunningTurn"}
        session.turn.steer(params.prompt, params.message_id)
        return {"outcome": "injected"}

    # Methods that wait

    def _prompt(self, raw: Any) -> Waiting:
        params = read(raw, Prompt)
        session = self._sessions.find(params.session_id)
        if session.turn is not None:
            raise invalid_request(
                f"session {params.session_id!r} is running a turn; steer it, or wait for its end"
            )
        turn = session.turn = Turn(session, params.prompt, self._model, self._front, self._limits)
        return turn.run

    def _new(self, raw: Any) -> Waiting:
        params = read(raw, NewSession)

        async def new() -> Json:
            session = await self._sessions.new(params)
            return {"sessionId": session.id, **modes(session)}

        return new

    def _load(self, raw: Any) -> Waiting:
        params = read(raw, OpenSession)

        async def load() -> Json:
            session = await self._sessions.open(params)
            for update in session.state.updates:
                self._front.update(session.id, update)
                await self._front.room()
            return modes(session)

        return load

    def _resume(self, raw: Any) -> Waiting:
        params = read(raw, OpenSession)

        async def resume() -> Json:
            return modes(await self._sessions.open(params))

        return resume

    def _fork(self, raw: Any) -> Waiting:
        params = read(raw, OpenSession)

        async def fork() -> Json:
            session = await self._sessions.fork(params)
            return {"sessionId": session.id, **modes(session)}

        return fork

    def _list(self, raw: Any) -> Waiting:
        params = read(raw, ListSessions)

        async def page() -> Json:
            # In a thread: there may be thousands of files.
            return await anyio.to_thread.run_sync(self._store.page, params.cwd, params.cursor)

        return page

    def _close(self, raw: Any) -> Waiting:
        params = read(raw, OfSession)

        async def close() -> Json:
            await self._sessions.close(params.session_id)
            return {}

        return close

    def _delete(self, raw: Any) -> Waiting:
        params = read(raw, OfSession)

        async def delete() -> Json:
            await self._sessions.close(params.session_id)
            self._store.delete(params.session_id)
            return {}

        return delete


def read(raw: Any, kind: type[T]) -> T:
    """Typed params; raises RequestFailed (-32602) that names the place."""
    try:
        return codec.decode_as(raw, kind)
    except codec.JSONError as error:
        raise invalid_params(f"invalid params: {error}") from None


def modes(session: Session) -> Json:
    """The `modes` of a session's response, where there is something to choose."""
    if not session.asks:
        return {}
    return {"modes": {"currentModeId": session.state.mode, "availableModes": MODES}}
