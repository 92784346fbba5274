"""The client, as a turn sees it: somewhere to send updates and someone to ask.

Owns: the shapes of what the agent sends by itself (`session/update`, `session/request_permission`).
Rule: an update is posted at once and never waits, so that updates and the response keep their
order; `room` is where a turn waits for a client that reads slowly.
Used by `bridge.loop_agent.turn` and `bridge.loop_agent.permission`.
"""

from typing import Any

from bridge.io.pipes import FdWriter
from bridge.rpc.connection import Connection

Json = dict[str, Any]
_QUEUED = 1 << 20


class Front:
    """The client at the other end of the connection."""

    def __init__(self, connection: Connection, writer: FdWriter) -> None:
        self._connection = connection
        self._writer = writer

    def update(self, session_id: str, update: Json) -> None:
        self._connection.notify("session/update", {"sessionId": session_id, "update": update})

    async def room(self) -> None:
        """Waits until the client has read most of what was posted."""
        if self._writer.queued > _QUEUED:
            await self._writer.drained()

    async def ask(self, session_id: str, tool_call: Json, options: list[Json]) -> Any:
        """The client's answer to a permission request. Raises RequestFailed, ConnectionEnded.

        Cancelled while it waits, it takes the request back.
        """
        params = {"sessionId": session_id, "toolCall": tool_call, "options": options}
        return await self._connection.request("session/request_permission", params)


def chunk(kind: str, content: Json, message_id: str) -> Json:
    """A `user_message_chunk`, `agent_message_chunk` or `agent_thought_chunk`."""
    return {"sessionUpdate": kind, "content": content, "messageId": message_id}


def text(words: str) -> Json:
    return {"type": "text", "text": words}
