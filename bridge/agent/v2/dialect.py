"""ACP version 2 in the place of version 1: what an agent's client says and reads in it.

Rule: the daemon speaks version 1 inside; every difference is met here, at the connection. Loaded
when an agent has answered that it speaks version 2; made by `bridge.agent.client`.
"""

import re
from typing import TYPE_CHECKING, Any

from bridge.agent.dialect import Dialect
from bridge.agent.v2 import shapes
from bridge.agent.v2.children import Child
from bridge.agent.v2.interpreter import Interpreter, Later
from bridge.errors import unsupported
from bridge.rpc.connection import Connection, Settle
from bridge.wire import codec
from bridge.wire.jsonrpc import Request

if TYPE_CHECKING:
    from bridge.agent.client import SessionSink

Params = dict[str, Any]

_RENAMED = {"authenticate": "auth/login", "logout": "auth/logout", "session/load": "session/resume"}
_OPENERS = ("session/new", "session/load", "session/resume", "session/fork")
_ID = re.compile(rb'"|-?\d+\Z')


class Dialect2(Dialect):
    """Version 2, with one connection."""

    version = 2
    served = frozenset({"session/request_permission", "elicitation/create"})

    def __init__(self, later: Later) -> None:
        self._later = later
        self._sessions: dict[str, Interpreter] = {}
        self._children: dict[str, tuple[str, Interpreter]] = {}
        """By their ids: the session that each works for, and itself."""

    def bind(self, session_id: str, sink: "SessionSink") -> Interpreter:
        """What stands between the connection and a session's own sink."""

        def adopt(child_id: str) -> None:
            if child_id not in self._sessions and child_id not in self._children:
                child = Interpreter(Child(sink, child_id), self._later, adopt)
                child.opened()
                self._children[child_id] = session_id, child

        made = self._sessions[session_id] = Interpreter(sink, self._later, adopt)
        return made

    def child(self, session_id: str) -> Interpreter | None:
        found = self._children.get(session_id)
        return None if found is None else found[1]

    def opened(self, session_id: str) -> None:
        self._sessions[session_id].opened()

    def forget(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)
        gone = [child for child, (parent, _) in self._children.items() if parent == session_id]
        for child in gone:
            del self._children[child]

    def call(self, method: str, params: Params) -> tuple[str, Params]:
        """A request in version 2's terms; raises BridgeError for what it has not."""
        if method == "session/set_mode":
            session = self._sessions.get(params["sessionId"])
            config_id = None if session is None else session.modes.config_id
            if config_id is None:
                raise unsupported("the agent's session has no modes: no option of that category")
            value = {"type": "id", "value": params["modeId"]}
            ident = {"sessionId": params["sessionId"], "configId": config_id}
            return "session/set_config_option", ident | value
        if method == "session/set_config_option":
            return method, {"type": "id", **params}
        if method in _OPENERS:
            params = dict(params)
            if "mcpServers" in params:
                params["mcpServers"] = [shapes.mcp_server(one) for one in params["mcpServers"]]
            if method == "session/load":
                params["replayFrom"] = {"type": "start"}
        return _RENAMED.get(method, method), params

    def result(self, method: str, params: Params, value: Any) -> Any:
        """A result in version 1's terms. `method`, `params`: as `call` was given them."""
        fields = codec.mapping(value)
        if fields is None or "configOptions" not in fields:
            return value
        options = shapes.config_options(fields["configOptions"])
        # A fork's result names the new session, its params the old one.
        named = fields.get("sessionId")
        session = self._sessions.get(
            named if isinstance(named, str) else params.get("sessionId", "")
        )
        modes = None if session is None else session.modes.take(options)
        beside = {"modes": modes} if modes is not None and method in _OPENERS else {}
        return fields | {"configOptions": options} | beside

    def prompt(
        self, connection: Connection, session_id: str, blocks: list[Params], settle: Settle
    ) -> None:
        """The turn's end is a state; what `settle` gets is made of it."""
        params = {"sessionId": session_id, "prompt": blocks}

        def send(answered: Settle) -> object:
            return connection.call("session/prompt", params, answered)

        self._sessions[session_id].prompt(send, settle)

    def cancel(self, connection: Connection, session_id: str) -> None:
        super().cancel(connection, session_id)
        if (session := self._sessions.get(session_id)) is not None:
            session.cancel()

    def cancellable(self, session_id: str, kind: str, ident: str) -> bool:
        session = self._sessions.get(session_id)
        return session is not None and session.tools.cancellable(kind, ident)

    def end(self, reason: str) -> None:
        for session in list(self._sessions.values()):
            session.end(reason)

    def objection(self, request: Request) -> str | None:
        """Ids are strings or integers, and never null."""
        if _ID.match(request.id):
            return None
        return "the id of a request is a string or an integer in ACP version 2"
