"""The child sessions of a version 2 agent: subagents, announced by `subagent_update`.

Owns: what a child's messages are to the session that it works for. Rules: a child has no turns of
its own there; what it asks, its parent's host or gate answers. Pure; made by
`bridge.agent.v2.dialect`.
"""

from typing import TYPE_CHECKING, Any

from bridge.agent.updates import Incoming
from bridge.rpc.connection import Settle
from bridge.wire.jsonrpc import Notification, Request, Response

if TYPE_CHECKING:
    from bridge.agent.client import SessionSink


class Child:
    """A `bridge.agent.client.SessionSink` on behalf of a child of another one's session."""

    def __init__(self, parent: "SessionSink", session_id: str) -> None:
        self.name = parent.name
        self._parent = parent
        self._session_id = session_id

    def update(self, incoming: Incoming) -> None:
        self._parent.child(self._session_id, incoming)

    def late(self, incoming: Incoming) -> None:
        self._parent.child(self._session_id, incoming)

    def child(self, session_id: str, incoming: Incoming) -> None:
        self._parent.child(session_id, incoming)

    def begun(self) -> Settle:
        return _nobody_waits

    def anew(self) -> None:
        """It has no turn."""

    def request(self, request: Request, client: Any) -> None:
        self._parent.request(request, client)

    def notification(self, notification: Notification) -> None:
        self._parent.notification(notification)


def _nobody_waits(_end: Response) -> None:
    """The end of a child's work: its parent goes on."""
