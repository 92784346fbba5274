"""Every operation of the host protocol: a request in, its one response out.

Owns: the table from operation to what it does. Rules: prompts go into their session's queue at
once, in the order they came; everything else runs in a task of its own and so overtakes them.
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
from bridge.session import controls, translate
from bridge.session.daemon import Daemon
from bridge.session.jobs import PromptJob
from bridge.session.launcher import described
from bridge.session.session import Session
from bridge.session.turn import TurnResult
from bridge.wire import codec, packets
from protocol_schemas import host as shapes

PROTOCOL = 1
_Result = dict[str, Any]
_Operation = Callable[[dict[str, Any], str], Awaitable[Any]]


class Operations:
    """Takes the host's requests (`bridge.host.server.HostServer.run`)."""

    def __init__(self, daemon: Daemon, group: TaskGroup, *, defaults: dict[str, Any]) -> None:
        self._daemon = daemon
        self._host = daemon.host
        self._group = group
        self._defaults = defaults
        self.finished = anyio.Event()
        """Set once a `shutdown` has been answered."""
        self._running = 0
        self._settled = anyio.Event()
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
            "status": self._status,
            "close": self._close,
            "shutdown": self._shutdown,
            **dict.fromkeys(controls.NAMES, self._control),
        }

    def take(self, request: dict[str, Any]) -> None:
        """Starts what a request asks for; its response is sent whatever happens."""
        name = request["operation"]
        session = request.get("session", "")
        try:
            if not isinstance(session, str):
                raise invalid_request('"session" is not a string')
            if self._daemon.ending:
                raise BridgeError("the daemon is shutting down", code="cancelled")
            if self._defaults and (given := codec.mapping(request.get("config"))) is not None:
                request["config"] = self._defaults | given
            if name == "prompt":
                self._prompt(request, session)
                return
            operation = self._table.get(name)
            if operation is None:
                raise invalid_request(
                    f"unknown operation {name!r}; known: {', '.join(self.names())}"
                )
        except BridgeError as error:
            self._fail(request, error)
            return
        self._running += 1
        self._group.start_soon(self._run, operation, request, session, name=name)

    def names(self) -> list[str]:
        """All operations there are."""
        return ["prompt", *self._table]

    async def _run(self, operation: _Operation, request: dict[str, Any], session: str) -> None:
        try:
            result = await operation(request, session)
        except BridgeError as error:
            self._fail(request, error)
        except Exception as error:  # noqa: BLE001 - every request gets an answer
            log.error("%s: %s", request["operation"], error, exc_info=debugging())
            self._fail(request, BridgeError(f"{type(error).__name__}: {error}"))
        else:
            self._host.send(responses.success(request, result))
        self._running -= 1
        self._settled.set()
        if request["operation"] == "shutdown":
            self.finished.set()

    async def settled(self) -> None:
        """Returns when every request taken has been answered."""
        while self._running:
            self._settled = anyio.Event()
            await self._settled.wait()

    def _fail(self, request: dict[str, Any], error: BridgeError) -> None:
        if request["operation"] == "prompt":
            self._host.send(responses.turn(request, TurnResult(error=error), allow_empty=False))
        else:
            self._host.send(responses.failure(request, error))

    def _prompt(self, request: dict[str, Any], name: str) -> None:
        config = fields_of(request, shapes.Prompt).config
        session = self._daemon.session(name)

        def respond(result: TurnResult) -> None:
            self._daemon.counters["turns"] += 1
            allow = config.allow_empty_tool_reply
            self._host.send(responses.turn(request, result, allow_empty=allow))

        session.queue.put(
            PromptJob(
                config,
                lambda can, first: translate.prompt_blocks(config, can, first=first),
                respond,
            )
        )

    async def _hello(self, request: dict[str, Any], name: str) -> _Result:
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
            "limits": {"packet_bytes": packets.CEILING, "agent_line_bytes": LINE_CEILING},
        }

    async def _open(self, request: dict[str, Any], name: str) -> _Result:
        config = fields_of(request, shapes.Open).config
        session = self._daemon.session(name)
        return await session.queue.call(lambda: described(session.open(config)))

    async def _restore(self, method: str, request: dict[str, Any], name: str) -> _Result:
        fields = fields_of(request, shapes.Restore)
        session = self._daemon.session(name)
        return await session.queue.call(
            lambda: described(session.restore(method, fields.session_id, fields.config))
        )

    async def _resume(self, request: dict[str, Any], name: str) -> _Result:
        return await self._restore("session/resume", request, name)

    async def _load(self, request: dict[str, Any], name: str) -> _Result:
        return await self._restore("session/load", request, name)

    async def _fork(self, request: dict[str, Any], name: str) -> _Result:
        fields = fields_of(request, shapes.Fork)
        source = self._daemon.known(name)
        source.living()
        if fields.new_session in self._daemon.sessions:
            raise invalid_request(f"there is a session {fields.new_session!r} already")
        branch = self._daemon.session(fields.new_session)
        try:
            return await branch.queue.call(lambda: described(branch.fork(source, fields.cwd)))
        except BridgeError:
            await self._daemon.close(fields.new_session)
            raise

    async def _steer(self, request: dict[str, Any], name: str) -> _Result:
        fields = fields_of(request, shapes.Steer)
        blocks = translate.message_blocks(fields.message)
        session = self._daemon.sessions.get(name)
        if session is None:
            return dict(controls.NO_TURN)
        return await controls.steer(session, blocks, fields.message_id)

    async def _send(self, request: dict[str, Any], name: str) -> _Result:
        return await controls.send(self._daemon.known(name), fields_of(request, shapes.Send))

    async def _cancel(self, request: dict[str, Any], name: str) -> _Result:
        session = self._daemon.sessions.get(name)
        if session is not None:
            await session.cancel()
        return {}

    async def _permission(self, request: dict[str, Any], name: str) -> _Result:
        fields = fields_of(request, shapes.PermissionAnswer)
        self._daemon.known(name).permissions.answer(fields.request_id, fields.outcome)
        return {}

    async def _elicitation(self, request: dict[str, Any], name: str) -> _Result:
        fields = fields_of(request, shapes.ElicitationAnswer)
        self._daemon.known(name).services.answer_elicitation(
            fields.request_id, fields.action, fields.content
        )
        return {}

    async def _control(self, request: dict[str, Any], name: str) -> Any:
        return await controls.ask(self._daemon.known(name), request["operation"], request)

    async def _status(self, request: dict[str, Any], name: str) -> _Result:
        return {
            "uptime": anyio.current_time() - self._daemon.started,
            "counters": dict(self._daemon.counters),
            "sessions": {key: _state(item) for key, item in self._daemon.sessions.items()},
        }

    async def _close(self, request: dict[str, Any], name: str) -> _Result:
        return {"response_metadata": await self._daemon.close(name)}

    async def _shutdown(self, request: dict[str, Any], name: str) -> _Result:
        return {"response_metadata": await self._daemon.shutdown()}


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
