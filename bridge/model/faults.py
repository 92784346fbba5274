"""What an upstream says went wrong, in a few words that can be shown to people.

Rule: short, in one line, without the credentials that the request had: gateways repeat keys that
they refuse. Pure; used by bridge.model.dialects and bridge.model.record.
"""

import re
from collections.abc import Iterator
from typing import Any

from bridge.wire import codec, sse
from bridge.wire.credentials import of_field, of_query
from bridge.wire.http_head import Headers

LONGEST = 300
"""Characters of an error's words."""
_SHORTEST = 5
"""Characters of a value that is worth masking: a shorter one would be found everywhere."""
_MASK = "***"
_KEY_LIKE = re.compile(
    r"\b(?:sk|pk|rk|xai|gsk)-[\w-]{8,}|\bAIza[\w-]{8,}|\bBearer\s+[\w.~+/-]{8,}=*"
)
_MARKUP = re.compile(r"<(script|style|head)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)


def words(body: dict[str, Any]) -> str | None:
    """The words of an error object in any API's shape; None for what is no error."""
    error = body.get("error")
    if isinstance(error, str):
        return error
    if isinstance(error, dict):
        found = error.get("message") or error.get("error") or error.get("type")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return str(found or "an error without words")  # pyright: ignore[reportUnknownArgumentType]
    if body.get("type") == "error":
        # The Responses API's event.
        return str(body.get("message") or body.get("code") or "an error without words")
    return None


def of_answer(status: int, text: bytes) -> str:
    """The words of an answer with an error's status, from its body."""
    value = _value(text)
    if isinstance(value, list) and value:
        # Gemini's stream without SSE.
        value = value[0]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        found = words(value) or value.get("message") or value.get("detail")  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType, reportUnknownVariableType]
        if found:
            return str(found)  # pyright: ignore[reportUnknownArgumentType]
    return _MARKUP.sub(" ", text[:20_000].decode(errors="replace")).strip() or f"status {status}"


def _value(text: bytes) -> Any:
    """What an error's body says: the JSON, or that of the first of the events which are; None for
    other text.
    """
    for each in (text, *(event.data for event in sse.Parser().feed(text + b"\n\n"))):
        try:
            return codec.decode(each)
        except codec.JSONError:
            continue
    return None


def shown(words: str, headers: Headers, target: bytes) -> str:
    """The words as they may be told: in one line, cut, without the request's credentials."""
    for secret in credentials(headers, target):
        if len(secret) >= _SHORTEST:
            words = words.replace(secret, _MASK)
    line = " ".join(_KEY_LIKE.sub(_MASK, words[: 10 * LONGEST]).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def credentials(headers: Headers, target: bytes) -> Iterator[str]:
    """The secrets of a request or a response, by the names of its fields and parameters."""
    for name, value in headers:
        yield from of_field(name.decode("latin-1"), value.decode("latin-1"))
    query = target.partition(b"?")[2].decode("latin-1")
    yield from (value for _, value in of_query(query))
