"""What a generation's request says of itself: its model, its tools, and whether it is a side call.

Rule: read, never required, and only the ends of what can be megabytes long. A profile's own rules
on side calls come before the general ones (bridge.rules.side_calls). Pure; used by
bridge.model.body and bridge.model.relay.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bridge.model.dialects import Dialect, Purpose
from bridge.rules import side_calls
from bridge.wire import codec
from bridge.wire.json_scan import NotJSON, Text, values
from protocol_schemas.model import ABSENT, ChatMessage, ChatRequest, Raw
from protocol_schemas.profile import SideCall

_HISTORIES = ("messages", "input", "contents")
_FORMATS = ("text", "response_format", "output_format", "output_config")
_CAPS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_FIRST = ("system", "instructions", "systemInstruction", "system_instruction", *_HISTORIES)
_ONE = Raw(b"1")
_LIST = ord("[")
_CHAT = tuple(name for name in ChatRequest.__struct_fields__ if name != "messages")


class Facts(NamedTuple):
    """What a request says of itself. `tools`: whether it offers some, None if it was not read;
    `side`: which side call it is by its looks, None for a turn's; `again`: the agent asks for more
    by itself.
    """

    model: str | None = None
    stream: bool = False
    tools: bool | None = False
    side: str | None = None
    again: bool = False


UNREAD = Facts(tools=None)


def purpose(facts: Facts, offered_before: bool) -> Purpose:
    """Whether a generation is a turn of the agent's work, or a side call of its own making
    (a title, a summary, a probe): those offer no tools while the agent's turns do. A question for
    more belongs to its turn also where the agent wants no more than words.
    """
    if facts.side is not None or (offered_before and facts.tools is False and not facts.again):
        return "side"
    return "turn"


def of_chat(request: ChatRequest, text: Text, rules: Sequence[SideCall] = ()) -> Facts:
    """The facts of a chat completions request, whose body is `text`."""
    fields = {name: raw for name in _CHAT if (raw := getattr(request, name)) != ABSENT}
    last = ABSENT
    if request.messages:
        fields["messages"] = request.messages[0].content
        last = _said(request.messages)
    side = None
    if rules:
        side = declared(rules, "chat", values(text))
    return _facts(fields, last, side)


def _said(messages: Sequence[ChatMessage]) -> Raw:
    """The content of the last message, and of the one before it where the last is no more than an
    agent's own note.
    """
    last = messages[-1].content
    if len(messages) > 1 and side_calls.is_context(memoryview(last)):
        return Raw(b"%b,%b" % (messages[-2].content, last))
    return last


def read(dialect: Dialect, text: Text, rules: Sequence[SideCall] = ()) -> Facts:
    """The facts of a request of another dialect; UNREAD if it is no JSON object."""
    try:
        return of_fields(dialect, values(text), rules)
    except NotJSON:
        return UNREAD


def of_fields(dialect: Dialect, fields: dict[str, Raw], rules: Sequence[SideCall] = ()) -> Facts:
    """The facts of a request whose top-level fields these are."""
    last = next((fields[name] for name in _HISTORIES if name in fields), ABSENT)
    return _facts(fields, last, declared(rules, dialect, fields))


def _facts(fields: dict[str, Raw], last: Raw, side: str | None) -> Facts:
    def head(name: str) -> bytes:
        return bytes(memoryview(fields[name])[: side_calls.SHOWN]) if name in fields else b""

    try:
        model = codec.decode(head("model") or b"null")
    except codec.JSONError:
        model = None
    asked = side_calls.Asked(
        _offers(fields.get("tools")) or _offers(fields.get("functions")),
        any(fields[name] == _ONE for name in _CAPS if name in fields),
        b"".join([head(name) for name in _FORMATS if name in fields]),
        b"".join([head(name) for name in _FIRST if name in fields]),
        bytes(memoryview(last)[-side_calls.LAST :]),
    )
    return Facts(
        model if isinstance(model, str) else None,
        head("stream") == b"true",
        asked.tools,
        side or side_calls.side(asked),
        side_calls.again(asked),
    )


def _offers(tools: Raw | None) -> bool:
    return tools is not None and len(view := memoryview(tools)) > 2 and view[0] == _LIST


def declared(rules: Sequence[SideCall], wire: str, fields: Mapping[str, Raw]) -> str | None:
    """The purpose by an agent's own rules (its profile's `side_calls`), of a request's fields."""
    return next(
        (rule.purpose for rule in rules if rule.wire == wire and _applies(rule, fields)), None
    )


def _applies(rule: SideCall, fields: Mapping[str, Raw]) -> bool:
    name, *path = rule.field.split(".")
    if name not in fields:
        return False
    try:
        value: Any = codec.decode(fields[name])
    except codec.JSONError:
        return False
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]  # pyright: ignore[reportUnknownVariableType]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):  # pyright: ignore[reportUnknownArgumentType]
            value = value[int(step)]  # pyright: ignore[reportUnknownVariableType]
        else:
            return False
    if rule.matches is not None:
        text = value if isinstance(value, str) else codec.encode(value).decode()
        return re.search(rule.matches, text) is not None
    return type(value) is type(rule.equals) and value == rule.equals  # pyright: ignore[reportUnknownArgumentType]
