"""How an agent is spoken with: version 1, in which the daemon thinks, and the base of any other.

Rule: what the session layer says and reads is version 1; a dialect meets every difference at the
connection, and this one has none. `bridge.agent.v2.dialect` is the other. Chosen by
`bridge.agent.client` once an agent has answered `initialize`.
"""

from typing import TYPE_CHECKING, Any

from bridge.rpc.connection import Connection, Settle
from bridge.wire.jsonrpc import Request

if TYPE_CHECKING:
    from bridge.agent.client import SessionSink, Sink

Params = dict[str, Any]


class Dialect:
    """ACP version 1."""

    version = 1
    served = frozenset(
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
    """The requests a client may get; any other is refused with -32601 at once."""

    def bind(self, session_id: str, sink: "SessionSink") -> "Sink":
        """The sink that a session's messages go to."""
        return sink

    def child(self, session_id: str) -> "Sink | None":
        """The sink of a session that another one has announced as its child."""
        return None

    def opened(self, session_id: str) -> None:
        """The response that opens a session has passed, and was told."""

    def forget(self, session_id: str) -> None:
        """The session's messages are of no interest any more."""

    def call(self, method: str, params: Params) -> tuple[str, Params]:
        """A request of ours as it goes out; raises BridgeError where there is no way to say it."""
        return method, params

    def result(self, method: str, params: Params, value: Any) -> Any:
        """Its result as the session layer reads it."""
        return value

    def prompt(
        self, connection: Connection, session_id: str, blocks: list[Params], settle: Settle
    ) -> None:
        """Sends a prompt; `settle` gets the end of its turn. Raises codec.JSONError."""
        connection.call("session/prompt", {"sessionId": session_id, "prompt": blocks}, settle)

    def cancel(self, connection: Connection, session_id: str) -> None:
        """Asks for the end of what a session does."""
        connection.notify("session/cancel", {"sessionId": session_id})

    def cancellable(self, session_id: str, kind: str, ident: str) -> bool:
        """Whether a `tool_call` or `terminal` can be cancelled by itself."""
        return False

    def end(self, reason: str) -> None:
        """The connection has ended."""

    def objection(self, request: Request) -> str | None:
        """Why a request of the agent cannot be one, if so."""
        return None
