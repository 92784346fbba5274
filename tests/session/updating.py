"""Updates as the session layer gets them, for its tests."""

from typing import Any

from bridge.agent import updates
from bridge.agent.updates import Incoming
from bridge.wire import codec


def incoming(update: dict[str, Any], **outer: Any) -> Incoming:
    """A `session/update` as read from a line."""
    params = {"sessionId": "s", "update": update, **outer}
    line = codec.encode({"jsonrpc": "2.0", "method": "session/update", "params": params})
    read = updates.decode(line)
    assert read is not None
    return read


def chunk(text: str, message_id: str | None = None, kind: str = "agent_message_chunk") -> Incoming:
    """A piece of text; with an id, of that message."""
    named = {} if message_id is None else {"messageId": message_id}
    return incoming({"sessionUpdate": kind, "content": {"type": "text", "text": text}, **named})
