"""Every operation of the host protocol: a request in, its one response out.

Owns: the table from operation to what it does. Rules: an operation acts at once, in the order the
requests came, and gives its result, or what is to be awaited for it in a task of its own; so none
overtakes another by chance, and none holds up the next. Only jobs wait for the jobs before them,
and what opens a session anew waits, with all behind it, until the one of its name is closed.
A new operation: its fields in `protocol_schemas.host`, its line and its method here.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup

from bridge import __version__
from bridge.errors import BridgeError, invalid_request
from bridge.host import responses
from bridge.host.requests import fields_of
from bridge.log import debugging, log
from bridge.rpc.connection import LINE_CEILING
from bridge.session import controls, opening, quirks, translate
from bridge.session.attendance import CLOSE_GRACE
from bridge.session.daemon import Daemon
from bridge.session.jobs import Announce, Block, Call, PromptJob
from bridge.session.session import Session
from bridge.session.turn import TurnResult
from bridge.wire import codec, packets
from protocol_schemas import host as shapes
from protocol_schemas.acp import AgentCapabilities

PROTOCOL = 1
_OPENERS = ("open", "resume", "load")
"""What makes a session anew where one of its name is being closed."""
_IN_ORDER = 4.0
"""Seconds that generation A's `shutdown` leaves to the prompts before it (HOST §2: strictly in
order); with what closing takes, it is answered within ten."""
_Result = dict[str, Any]
_Waits = Callable[[], Awaitable[Any]]
_Operation = Callable[[dict[str, Any], str], dict[str, Any] | _Waits | None]


class Operations:
    """Takes the host's requests (`bridge.host.server.HostServer.run`)."""

    def __init__(self, daemon: Daemon, group: TaskGroup, *, defaults: dict[str, Any]) -> None:
        self._daemon = daemon
        self._host = daemon.host
        self._group = group
        self._defaults = defaults
        self.finished = anyio.Event()
        """Set once a `shutdown` has been answered."""
        self.in_order = False
        """Whether a `shutdown` of generation A waits for its turn; the end of input does not hurry
        it."""
        self._answered = anyio.Event()
        self._running = 0
        self._settled = anyio.Event()
        self._behind: dict[str, list[dict[str, Any]]] = {}
        """What waits for the close of the session of that name, in order."""
        self._table: dict[str, _Operation] = {
            "hello": self._hello,
            "open": self._open,
            "steer": self._steer,
            "send": self._send,
            "cancel": self._cancel,
            "resume": self._resume,
            "load": self._load,
            "fork": self._fork,
            "permission": self._permission,
            "elicitation": self._elicitation,
            "call_tool": self._call_tool,
            "list_tools": self._list_tools,
            "status": self._status,
            "close": self._close,
            "shutdown": self._shutdown,
            **dict.fromkeys(controls.NAMES, self._control),
        }

    def take(self, request: dict[str, Any]) -> None:
        """Does what a request asks for; its response is sent whatever happens."""
        try:
            if self._waits_for_close(request):
                return
            outcome = self._begin(request)
        except Exception as error:  # noqa: BLE001 - every request gets an answer
            self._fail(request, error)
            return
        if callable(outcome):
            self._running += 1
            self._group.start_soon(self._finish, request, outcome, name=request["operation"])
        elif outcome is not None:
            self._host.send(responses.success(request, outcome))

    def names(self) -> list[str]:
        """All operations there are."""
        return ["prompt", *self._table]

    def _begin(self, request: dict[str, Any]) -> dict[str, Any] | _Waits | None:
        """The result, or what gives it; None for what is answered by its job."""
        name = request["operation"]
        session = request.get("session", "")
        if not isinstance(session, str):
            raise invalid_request('"session" is not a string')
        if self._daemon.ending:
            raise BridgeError("the daemon is shutting down", code="cancelled")
        if name == "prompt":
            return self._prompt(request, session)
        if self._defaults and (given := codec.mapping(request.get("config"))) is not None:
            request["config"] = self._defaults | given
        operation = self._table.get(name)
        if operation is None:
            raise invalid_request(f"unknown operation {name!r}; known: {', '.join(self.names())}")
        return operation(request, session)

    async def _finish(self, request: dict[str, Any], outcome: _Waits) -> None:
        try:
            result = await outcome()
        except Exception as error:  # noqa: BLE001 - every request gets an answer
            self._fail(request, error)
        else:
            self._host.send(responses.success(request, result))
        if request["operation"] == "close":
            for held in self._behind.pop(request.get("session", ""), ()):
                self.take(held)
        self._running -= 1
        self._settled.set()
        if request["operation"] == "shutdown":
            self.finished.set()

    def _waits_for_close(self, request: dict[str, Any]) -> bool:
        """Whether a request is held until the session of its name is closed."""
        if not self._behind and request["operation"] not in _OPENERS:
            return False
        name = request.get("session", "")
        if not isinstance(name, str) or self._daemon.ending:
            return False
        if name not in self._behind:
            session = self._daemon.sessions.get(name)
            if request["operation"] not in _OPENERS or session is None:
                return False
            if session.state != "closed":
                return False
        self._behind.setdefault(name, []).append(request)
        return True

    async def settled(self) -> None:
        """Returns when every request taken has been answered."""
        while self._running:
            self._settled = anyio.Event()
            await self._settled.wait()

    def _fail(self, request: dict[str, Any], failure: Exception) -> None:
        if isinstance(failure, BridgeError):
            error = failure
        elif isinstance(failure, codec.JSONError):
            error = invalid_request(f"{request['operation']}: {failure}")
        else:
            log.error(
                "%s: %s", request["operation"], failure, exc_info=failure if debugging() else None
            )
            error = BridgeError(f"{type(failure).__name__}: {failure}")
        if request["operation"] == "prompt":
            self._host.send(responses.turn(request, TurnResult(error=error), allow_empty=False))
        else:
            self._host.send(responses.failure(request, error))

    def _prompt(self, request: dict[str, Any], name: str) -> None:
        given = fields_of(request, shapes.Prompt).config
        opening = self._with_defaults(request, given)
        # Generation A names all settings in each prompt; a later one of the others, what differs.
        config = opening if opening.messages is not None else given
        session = self._daemon.session(name)

        def respond(result: TurnResult) -> None:
            self._daemon.counters["turns"] += 1
            result.limit = self._daemon.proxies.stopped_by(name)
            allow = quirks.allows_empty(session, config)
            self._host.send(responses.turn(request, result, allow_empty=allow))
            self._answered.set()

        def blocks(can: AgentCapabilities, first: bool) -> list[Block]:
            return translate.prompt_blocks(config, can, first=first, told=quirks.told(session))

        session.queue.put(PromptJob(config, blocks, respond, opening=opening))

    def _with_defaults(self, request: dict[str, Any], given: shapes.Config) -> shapes.Config:
        if not self._defaults:
            return given
        config = codec.mapping(request.get("config")) or {}
        return fields_of(request | {"config": self._defaults | config}, shapes.Prompt).config

    def _hello(self, request: dict[str, Any], name: str) -> _Result:
        hello = fields_of(request, shapes.Hello)
        if hello.protocol != PROTOCOL:
            raise BridgeError(
                f"host protocol {hello.protocol} is not spoken here; spoken: [{PROTOCOL}]",
                code="unsupported",
                extra={"protocols": [PROTOCOL]},
            )
        self._daemon.native = True
        return {
            "protocol": PROTOCOL,
            "daemon": {"name": "acp-mcp-bridge", "version": __version__},
            "operations": self.names(),
            "events": self._host.subscribe(hello.events),
            "limits": {
                "packet_bytes": packets.CEILING,
                "agent_line_bytes": LINE_CEILING,
                "control_seconds": controls.TIMEOUT,
                "login_seconds": controls.LOGIN_TIMEOUT,
            },
        }

    def _open(self, request: dict[str, Any], name: str) -> None:
        config = fields_of(request, shapes.Open).config
        session = self._daemon.session(name)
        self._call(request, session, lambda announce: opening.create(session, config, announce))

    def _restore(self, method: str, request: dict[str, Any], name: str) -> None:
        fields = fields_of(request, shapes.Restore)
        session = self._daemon.session(name)

        async def act(announce: Announce) -> None:
            await opening.restore(session, method, fields.session_id, fields.config, announce)

        self._call(request, session, act)

    def _resume(self, request: dict[str, Any], name: str) -> None:
        self._restore("session/resume", request, name)

    def _load(self, request: dict[str, Any], name: str) -> None:
        self._restore("session/load", request, name)

    def _fork(self, request: dict[str, Any], name: str) -> None:
        fields = fields_of(request, shapes.Fork)
        source = self._daemon.known(name)
        source.living()
        held = self._daemon.sessions.get(fields.new_session)
        if held is not None and opening.owed(held) is None:
            raise invalid_request(f"there is a session {fields.new_session!r} already")
        branch = self._daemon.session(fields.new_session)

        async def act(announce: Announce) -> None:
            try:
                await opening.fork(branch, source, fields.cwd, announce)
            except BridgeError:
                # The name stays, so that a prompt behind this is told and makes no session of it.
                await self._daemon.abandon(branch)
                raise

        self._call(request, branch, act)

    def _call(
        self,
        request: dict[str, Any],
        session: Session,
        act: Callable[[Announce], Awaitable[None]],
    ) -> None:
        """Queues a call; it is answered where its result comes by, so that nothing precedes it."""

        def respond(outcome: dict[str, Any] | BridgeError) -> None:
            if isinstance(outcome, BridgeError):
                self._fail(request, outcome)
            else:
                self._host.send(responses.success(request, outcome))

        session.queue.put(Call(act, respond))

    def _steer(self, request: dict[str, Any], name: str) -> _Result | _Waits:
        fields = fields_of(request, shapes.Steer)
        blocks = translate.message_blocks(fields.message)
        session = self._daemon.sessions.get(name)
        if session is None:
            return dict(controls.NO_TURN)
        return controls.steer(session, blocks, fields.message_id)

    def _send(self, request: dict[str, Any], name: str) -> _Result | _Waits:
        return controls.send(self._daemon.known(name), fields_of(request, shapes.Send))

    def _cancel(self, request: dict[str, Any], name: str) -> _Result | _Waits:
        session = self._daemon.sessions.get(name)
        turn = None if session is None else session.cancel()
        if session is None or turn is None:
            return {}

        async def ended() -> _Result:
            await session.until(lambda: session.turn is not turn)
            return {}

        return ended

    def _permission(self, request: dict[str, Any], name: str) -> _Result:
        fields = fields_of(request, shapes.PermissionAnswer)
        self._daemon.known(name).permissions.answer(fields.request_id, fields.outcome)
        return {}

    def _elicitation(self, request: dict[str, Any], name: str) -> _Result:
        fields = fields_of(request, shapes.ElicitationAnswer)
        self._daemon.known(name).services.answer_elicitation(
            fields.request_id, fields.action, fields.content
        )
        return {}

    def _control(self, request: dict[str, Any], name: str) -> _Waits:
        return controls.ask(self._daemon.known(name), request["operation"], request)

    def _call_tool(self, request: dict[str, Any], name: str) -> _Waits:
        fields = fields_of(request, shapes.CallTool)
        config = self._tool_config(fields.config, name)
        given = translate.mcp_servers(config)
        return lambda: self._daemon.proxies.call_tool(
            name, config, given, fields.name, fields.arguments
        )

    def _list_tools(self, request: dict[str, Any], name: str) -> _Waits:
        config = self._tool_config(fields_of(request, shapes.ListTools).config, name)
        given = translate.mcp_servers(config)
        return lambda: self._daemon.proxies.list_tools(name, config, given)

    def _tool_config(self, given: shapes.Config, name: str) -> shapes.Config:
        """Where the servers are named: in the request, else in the session's own config."""
        session = self._daemon.sessions.get(name)
        named = given.mcp_urls or given.mcp_servers
        return given if named or session is None else session.config

    def _status(self, request: dict[str, Any], name: str) -> _Result:
        return {
            "uptime": anyio.current_time() - self._daemon.started,
            "counters": dict(self._daemon.counters),
            "sessions": {key: _state(item) for key, item in self._daemon.sessions.items()},
        }

    def _close(self, request: dict[str, Any], name: str) -> _Waits:
        session = self._daemon.known(name)
        session.begin_close()

        async def closed() -> _Result:
            return {"response_metadata": await self._daemon.close(session)}

        return closed

    def _shutdown(self, request: dict[str, Any], name: str) -> _Waits:
        self.in_order = responses.is_legacy(request)
        if not self.in_order:
            self._daemon.ending = True

        async def done() -> _Result:
            if self.in_order:
                with anyio.move_on_after(_IN_ORDER):
                    await self._prompts_answered()
            return {"response_metadata": await self._daemon.shutdown(longest=CLOSE_GRACE)}

        return done

    async def _prompts_answered(self) -> None:
        while any(any(each.queue.prompts()) for each in self._daemon.sessions.values()):
            self._answered = anyio.Event()
            await self._answered.wait()


def _state(session: Session) -> _Result:
    agent = session.agent
    return {
        "state": session.state,
        "session_id": session.session_id,
        "agent_pid": agent.process.pid if agent is not None and agent.death is None else None,
        "turns": session.turns,
        "queued_messages": len(session.mailbox),
        "noise_lines": agent.client.noise_lines if agent is not None else 0,
    }
