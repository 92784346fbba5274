"""A request's body that has to be looked into: decoded, read, and spliced where a rule wants it.

Rule: what needs nothing goes on as the very bytes that came, encoded as they were. What is changed
goes on plain, without its Content-Encoding. What cannot be read goes on unchanged, with a warning
for the record, unless a limit depends on it (415). Used by bridge.model.relay.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import anyio
import anyio.to_thread
import msgspec

from bridge.model import dialects
from bridge.model.dialects import Dialect, Facts
from bridge.model.encodings import EncodingError, TooLong, decode
from bridge.rules import content, empty_tool_calls, limits, null_fields
from bridge.rules.message import Edits
from bridge.wire import codec
from bridge.wire.json_scan import NotJSON, Text, raw_object
from bridge.wire.splice import Chat, Parts, Spliced, edit_fields
from protocol_schemas.model import ABSENT, Change, ChatMessage, ChatRequest, ModelOptions, Raw

CEILING = 1 << 30
"""Bytes of a body that is read, as sent and decoded: far above what any model takes."""
_IN_A_THREAD = 1 << 16
_LIMIT = "max_turn_tokens"

MessageRule = Callable[[ChatMessage], Edits]


class Unreadable(ValueError):
    """A body in an encoding that cannot be read though it must be."""


class Prepared(NamedTuple):
    """A body to send: its parts and their size. `plain`: it was encoded and is not any more."""

    parts: Parts
    size: int
    facts: Facts
    changes: list[Change]
    plain: bool = False
    warning: str | None = None


@cache
def _rules(
    mend_content: bool, beside: content.Mode, drop_empty: bool, drop_nulls: bool
) -> tuple[tuple[str, MessageRule], ...]:
    found: list[tuple[str, MessageRule]] = []
    if mend_content:
        found.append((content.NAME, partial(content.mend, beside_tool_calls=beside)))
    if drop_empty:
        found.append((empty_tool_calls.NAME, empty_tool_calls.mend))
    if drop_nulls:
        found.append((null_fields.NAME, null_fields.mend))
    return tuple(found)


def rules_of(options: ModelOptions) -> tuple[tuple[str, MessageRule], ...]:
    """The rules that are switched on, by name."""
    return _rules(
        options.mend_content,
        options.tool_call_content,
        options.drop_empty_tool_calls,
        options.drop_nulls,
    )


async def prepare(
    body: Text, dialect: Dialect, encoding: bytes | None, options: ModelOptions
) -> Prepared:
    """The body as it has to go on. Raises TooLong, Unreadable."""
    text: Text = body
    if encoding is not None and encoding.strip().lower() not in (b"", b"identity"):
        try:
            if len(body) > _IN_A_THREAD:
                text = await anyio.to_thread.run_sync(decode, encoding, body, CEILING)
            else:
                text = decode(encoding, body, CEILING)
        except TooLong:
            raise
        except EncodingError as error:
            if options.limits.max_turn_tokens is not None:
                raise Unreadable(f"the limit {_LIMIT} needs the body read, but {error}") from None
            return Prepared([body], len(body), Facts(), [], warning=f"not read: {error}")
    try:
        spliced, facts = _splice(text, dialect, options)
    except NotJSON:
        spliced, facts = None, Facts()
    if spliced is None:
        return Prepared([body], len(body), facts, [])
    return Prepared(spliced.parts, spliced.size, facts, spliced.changes, plain=text is not body)


def _splice(text: Text, dialect: Dialect, options: ModelOptions) -> tuple[Spliced | None, Facts]:
    cap = options.limits.max_turn_tokens
    if dialect == "chat":
        chat = Chat(text)
        fields = _fields(chat.request)
        top = None if cap is None else (_LIMIT, _cap(dialect, fields, cap))
        return chat.splice(rules_of(options), top), dialects.facts(dialect, fields)
    facts, fields = read_facts(dialect, text)
    if cap is None:
        return None, facts
    if dialect == "gemini":
        return _cap_gemini(text, fields, cap), facts
    edits = _cap(dialect, fields, cap)
    return (edit_fields(text, _LIMIT, edits) if edits else None), facts


def read_facts(dialect: Dialect, text: Text) -> tuple[Facts, dict[str, Raw]]:
    """What a request of another dialect says of itself, and its fields."""
    try:
        fields = raw_object(text)
    except (msgspec.DecodeError, RecursionError):
        return Facts(), {}
    return dialects.facts(dialect, fields), fields


def _fields(request: ChatRequest) -> dict[str, Raw]:
    names = ("model", "stream", "tools", "functions", "max_tokens", "max_completion_tokens")
    fields: dict[str, Raw] = {name: getattr(request, name) for name in names}
    if request.messages:
        fields["messages"] = request.messages[0].content
    return {name: raw for name, raw in fields.items() if raw != ABSENT}


def _cap(dialect: Dialect, fields: dict[str, Raw], cap: int) -> Edits:
    """The edits that lower a request's own cap on the answer's tokens."""
    names = dialects.TOKEN_CAPS.get(dialect, ())
    edits: Edits = {}
    for name in names:
        if name in fields:
            edits |= _lowered(name, fields[name], cap)
    if names and not any(name in fields for name in names):
        edits[names[-1]] = b"%d" % cap
    return edits


def _cap_gemini(text: Text, fields: dict[str, Raw], cap: int) -> Spliced | None:
    config, name = "generationConfig", "maxOutputTokens"
    if config not in fields:
        return edit_fields(text, _LIMIT, {config: b'{"%b":%d}' % (name.encode(), cap)})
    inner = codec.decode(fields[config])
    asked = inner.get(name) if isinstance(inner, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    edits = _lowered(name, codec.encode(asked), cap)
    return edit_fields(text, _LIMIT, edits, inside=config) if edits else None


def _lowered(name: str, asked: bytes | Raw, cap: int) -> Edits:
    value = limits.lowered(cap, codec.decode(asked))
    return {} if value is None else {name: b"%d" % value}
