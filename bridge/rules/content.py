"""Null or absent assistant content, which strict providers refuse ("expected a string, got null").

Rule (cases/45, 49, 53): in chat completions requests, of role `assistant` only. Without tool calls
it becomes `""`. Beside tool calls the upstream's `tool_call_content` decides: `keep` (as sent),
`empty` (null or absent becomes `""`: servers whose schema wants a string there), `null` (absent
becomes null: gateways to Bedrock or Anthropic that make an empty text block of `""`).
A message is without tool calls if `tool_calls` is absent, null or `[]` and `function_call` absent
or null; any other shape means with. Called per message through `bridge.wire.splice`.
"""

from typing import Literal

from bridge.rules.message import Edits, is_assistant, is_null
from protocol_schemas.model import ABSENT, ChatMessage, Raw

NAME = "content"
Mode = Literal["keep", "empty", "null"]


def mend(message: ChatMessage, beside_tool_calls: Mode) -> Edits:
    """The content the message has to get, if any."""
    content = message.content
    absent = content == ABSENT
    if not (absent or is_null(content)) or not is_assistant(message):
        return {}
    if without_tool_calls(message):
        return {"content": b'""'}
    if beside_tool_calls == "empty":
        return {"content": b'""'}
    if beside_tool_calls == "null" and absent:
        return {"content": b"null"}
    return {}


def without_tool_calls(message: ChatMessage) -> bool:
    """Whether the message calls nothing."""
    return _nothing(message.function_call) and (
        _nothing(message.tool_calls) or is_empty_array(message.tool_calls)
    )


def is_empty_array(raw: Raw) -> bool:
    """Whether a value is `[]`, however spaced."""
    data = bytes(raw)
    return data[:1] == b"[" and not data[1:-1].strip(b" \t\r\n")


def _nothing(raw: Raw) -> bool:
    return raw == ABSENT or is_null(raw)
