"""The model APIs, by path: what an exchange is for, and where its answer says what it cost.

Rule: read, never required. An answer that says nothing, or something else, leaves the fields empty.
Pure; used all over bridge.model. What a request says is facts.py's.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from msgspec.structs import astuple

from bridge.model import faults
from bridge.wire import codec, sse
from protocol_schemas.model import Usage

Dialect = Literal["chat", "completions", "anthropic", "responses", "gemini", "other"]
Purpose = Literal["turn", "side", "count", "models", "other"]

_GEMINI = re.compile(r"/models/[^/]+:(generateContent|streamGenerateContent|countTokens)$")
_MODELS = re.compile(r"/models(/[^:]*)?$")
_OPENAI = re.compile(rb'"(?:(?:usage|error)"\s*:\s*\{|(?:finish_reason|error)"\s*:\s*")')
_TELLING = {
    "chat": _OPENAI,
    "completions": _OPENAI,
    "anthropic": re.compile(rb'"(?:message_(?:start|delta)|error)"'),
    "responses": re.compile(rb'"response\.(?:completed|incomplete|failed)"|"type"\s*:\s*"error"'),
    "gemini": re.compile(rb'"(?:usageMetadata|finishReason|error)"'),
}
_NO_JSON = re.compile(rb"\s*(?:data|event|id|retry|):")
"""How a stream begins that some gateways give another type."""
TOKEN_CAPS = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "completions": ("max_tokens",),
    "anthropic": ("max_tokens",),
    "responses": ("max_output_tokens",),
}
"""The request's fields that cap the answer's tokens; the last is set where none is there."""
CAPPED = frozenset(("length", "max_tokens", "max_output_tokens", "MAX_TOKENS"))
"""The finish reasons that say an answer was cut by its cap."""


class Kind(NamedTuple):
    """What a request is by its method and path alone."""

    dialect: Dialect
    purpose: Purpose


@lru_cache(256)
def kind(method: str, path: str) -> Kind:
    """The dialect and purpose of a request; generations count as turns here (see `purpose`)."""
    path = path.removesuffix("/")
    if method == "POST":
        if path.endswith("/chat/completions"):
            return Kind("chat", "turn")
        if path.endswith("/completions"):
            return Kind("completions", "turn")
        if path.endswith("/messages"):
            return Kind("anthropic", "turn")
        if path.endswith("/messages/count_tokens"):
            return Kind("anthropic", "count")
        if path.endswith("/responses"):
            return Kind("responses", "turn")
        if path.endswith("/responses/input_tokens"):
            return Kind("responses", "count")
        if found := _GEMINI.search(path):
            return Kind("gemini", "count" if found[1] == "countTokens" else "turn")
    elif method in ("GET", "HEAD") and _MODELS.search(path):
        return Kind("other", "models")
    return Kind("other", "other")


class Answer:
    """What a response says of itself, gathered from its JSON values in order."""

    def __init__(self) -> None:
        self.model: str | None = None
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self.error: str | None = None
        """What the upstream says went wrong: in an error's body, or in the middle of a stream."""

    @property
    def silent(self) -> bool:
        """Whether nothing has been found."""
        return self.finish_reason is None and self.usage is None

    def read(self, value: Any) -> None:
        """Takes one JSON value: a whole answer, or one event of a stream."""
        if isinstance(value, list):
            # Gemini's stream without SSE is one array.
            for item in value:  # pyright: ignore[reportUnknownVariableType]
                self.read(item)
            return
        top = _dict(value)
        inner = _dict(top.get("response")) or _dict(top.get("message"))
        self.error = faults.words(top) or faults.words(inner) or self.error
        for each in (top, inner):
            self._model(each.get("model") or each.get("modelVersion"))
            self._usage(_dict(each.get("usage")) or _dict(each.get("usageMetadata")))
            self._reason(each.get("stop_reason"))
        self._usage(_dict(_first(top.get("choices")).get("usage")))
        self._reason(_first(top.get("choices")).get("finish_reason"))
        self._reason(_first(top.get("candidates")).get("finishReason"))
        self._reason(_dict(top.get("delta")).get("stop_reason"))
        for each in (inner, top):
            if each.get("object") == "response":
                incomplete = _dict(each.get("incomplete_details")).get("reason")
                status = each.get("status")
                self._reason(incomplete or (status if status != "in_progress" else None))

    def _model(self, model: Any) -> None:
        if isinstance(model, str):
            self.model = model

    def _reason(self, reason: Any) -> None:
        if isinstance(reason, str):
            self.finish_reason = reason

    def _usage(self, said: dict[str, Any]) -> None:
        if not said:
            return
        before = self.usage or Usage()
        found = usage(said)
        self.usage = Usage(
            *(
                old if new is None else new
                for old, new in zip(astuple(before), astuple(found), strict=True)
            )
        )


def usage(said: dict[str, Any]) -> Usage:
    """The tokens of a `usage` or `usageMetadata` object, in whichever dialect."""
    spent = _number(said, "prompt_tokens", "input_tokens", "promptTokenCount")
    if spent is not None:
        # Anthropic counts what the cache took apart from the rest.
        for name in ("cache_read_input_tokens", "cache_creation_input_tokens"):
            spent += _number(said, name) or 0
    made = _number(said, "completion_tokens", "output_tokens", "candidatesTokenCount")
    thought = _number(said, "thoughtsTokenCount")
    if thought is not None:
        made = (made or 0) + thought
    into = _dict(said.get("prompt_tokens_details")) or _dict(said.get("input_tokens_details"))
    out = _dict(said.get("completion_tokens_details")) or _dict(said.get("output_tokens_details"))
    cached = _number(said, "cache_read_input_tokens", "cachedContentTokenCount")
    return Usage(
        spent,
        made,
        cached if cached is not None else _number(into, "cached_tokens"),
        thought if thought is not None else _number(out, "reasoning_tokens"),
    )


def read_answer(dialect: Dialect, content_type: bytes, body: bytes) -> Answer:
    """What a whole or cut answer says, decoded from its content encoding."""
    answer = Answer()
    if dialect == "other":
        return answer
    for text in _values(dialect, content_type, body, answer):
        try:
            answer.read(codec.decode(text))
        except codec.JSONError:
            continue
    return answer


def _values(dialect: Dialect, content_type: bytes, body: bytes, answer: Answer) -> Iterator[bytes]:
    """The JSON texts of an answer that can hold something new: of a stream's events only some are
    decoded, since there can be many thousands.
    """
    stream = content_type.lower().startswith(b"text/event-stream")
    if not stream and not _NO_JSON.match(body):
        yield body
        return
    telling = _TELLING[dialect].search
    parser = sse.Parser()
    # Servers exist that end without the last event's blank line.
    for data in (*(event.data for event in parser.feed(body)), parser.rest):
        if (answer.model is None and b'"model' in data) or telling(data):
            yield data


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _first(value: Any) -> dict[str, Any]:
    return _dict(value[0]) if isinstance(value, list) and value else {}  # pyright: ignore[reportUnknownArgumentType]


def _number(said: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = said.get(name)
        if isinstance(value, float) and value.is_integer():
            # What a gateway in Lua or JavaScript makes of a number.
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None
