"""What the rules on chat messages share: the shape of their answer, and a few questions.

Rule: a rule is a pure function from one message, its fields raw, to edits: a key with the raw JSON
it has to have, or None to leave it out. It never sees or changes anything but that message.
"""

from protocol_schemas.model import ChatMessage, Raw

Edits = dict[str, bytes | None]

_NULL = Raw(b"null")
_ASSISTANT = Raw(b'"assistant"')


def is_null(raw: Raw) -> bool:
    """Whether a value is null."""
    return raw == _NULL


def is_assistant(message: ChatMessage) -> bool:
    """Whether the role is `assistant`, however escaped."""
    role = message.role
    if role == _ASSISTANT:
        return True
    text = bytes(role)
    return b"\\u" in text and _unescaped(text) == '"assistant"'


def _unescaped(text: bytes) -> str:
    """An escaped string whose meaning is ASCII without quotes; anything else as something else."""
    parts = text.decode("latin-1").split("\\u")
    try:
        return parts[0] + "".join(chr(int(part[:4], 16)) + part[4:] for part in parts[1:])
    except ValueError:
        return ""
