"""`tool_calls: []` on an assistant message, which OpenAI's own API refuses ("empty array. Expected
an array with minimum length 1"), and so do Qwen's and newer DeepSeek models.

Off by default: the array is the agent's own, and most providers take it (cases/53).
"""

from bridge.rules.content import is_empty_array
from bridge.rules.message import Edits, is_assistant
from protocol_schemas.model import ABSENT, ChatMessage

NAME = "empty_tool_calls"


def mend(message: ChatMessage) -> Edits:
    """Leaves an empty `tool_calls` of an assistant message out."""
    raw = message.tool_calls
    if raw != ABSENT and is_empty_array(raw) and is_assistant(message):
        return {"tool_calls": None}
    return {}
