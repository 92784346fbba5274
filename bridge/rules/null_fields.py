"""Null `refusal`, `function_call` and `audio` on assistant messages: agents replay them from an
answer's dump, and providers with closed schemas refuse every field they do not know, null or not.

Off by default; Mistral ("Extra inputs are not permitted") and Cerebras ("property ... is
unsupported") need it.
"""

from bridge.rules.message import Edits, is_assistant, is_null
from protocol_schemas.model import ChatMessage

NAME = "null_fields"


def mend(message: ChatMessage) -> Edits:
    """Leaves those fields of an assistant message out that are null."""
    fields = {
        "refusal": message.refusal,
        "function_call": message.function_call,
        "audio": message.audio,
    }
    edits: Edits = {name: None for name, raw in fields.items() if is_null(raw)}
    return edits if edits and is_assistant(message) else {}
