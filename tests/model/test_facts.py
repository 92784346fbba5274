"""What a request says of itself, and what it is for."""

import json
from typing import Any

import pytest

from bridge.model.facts import UNREAD, Facts, of_chat, purpose, read
from bridge.wire.splice import Chat
from protocol_schemas.profile import SideCall


def said(value: object, dialect: Any = "chat", rules: Any = ()) -> Facts:
    return read(dialect, json.dumps(value).encode(), rules)


def test_a_request_tells_its_model_and_whether_it_streams_and_offers_tools() -> None:
    assert said({"model": "m", "stream": True, "tools": [{}]}) == Facts("m", True, True)
    assert said({"model": 7, "stream": False, "tools": []}) == Facts(None, False, False)
    assert said({"functions": [{}]}).tools


@pytest.mark.parametrize(
    "dialect, request_, side",
    [
        ("chat", {"messages": "Generate a short Title for this conversation"}, "title"),
        ("chat", {"messages": "the title of the book", "tools": [{}]}, None),
        ("anthropic", {"max_tokens": 1, "messages": [{"content": "Hi"}]}, "warm-up"),
        ("anthropic", {"max_tokens": 10, "system": "You make titles.", "messages": []}, "title"),
        (
            "responses",
            {
                "model": "gpt-small",
                "tools": [{}],
                "text": {"format": {"schema": {"properties": {"title": {}}}}},
            },
            "title",
        ),
        ("responses", {"input": "go on", "max_output_tokens": 1}, "probe"),
        ("chat", {"messages": "quota", "max_completion_tokens": 1}, "probe"),
        ("chat", {"messages": "hello", "max_tokens": 100}, None),
        ("gemini", {"systemInstruction": {"parts": [{"text": "a title"}]}}, "title"),
    ],
)
def test_side_calls_are_known(dialect: str, request_: object, side: str | None) -> None:
    assert said(request_, dialect).side == side


def test_of_chat_the_first_and_the_last_message_are_looked_at() -> None:
    def of(*contents: str, **more: Any) -> Facts:
        messages = [{"role": "user", "content": text} for text in contents]
        body = json.dumps({"messages": messages, **more}).encode()
        return of_chat(Chat(body).request, body)

    assert of("You are a title generator", "hello").side == "title"
    assert of("hello", "a title", "go").side is None
    assert of("x", "Please continue from where you left off.").again
    assert not of("Please continue from where you left off.", "x").again
    suggestion = "[SUGGESTION MODE: Suggest what the user might naturally type next.]"
    assert of("hello", suggestion, tools=[{}]).side == "suggestion"
    context = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\\nnone\\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"
    more = "The previous attempt did not produce a user-visible answer. Continue from the state."
    assert of("x", more, context).again
    assert not of(more, "x", context).again
    assert of(context) == Facts()
    assert of() == Facts()


def test_a_call_without_tools_is_a_side_call_once_tools_were_offered() -> None:
    assert purpose(Facts(tools=True), False) == "turn"
    assert purpose(Facts(), False) == "turn"
    assert purpose(Facts(), True) == "side"
    assert purpose(Facts(side="probe", tools=True), False) == "side"
    assert purpose(Facts(again=True), True) == "turn"
    assert purpose(UNREAD, True) == "turn"


@pytest.mark.parametrize("text", [b"", b"[]", b"\xff", b"7", b"[" * 100_000])
def test_what_is_no_object_says_nothing(text: bytes) -> None:
    assert read("responses", text) == UNREAD


@pytest.mark.parametrize("other", [b'"\\ud83d"', b"[" * 3000 + b"]" * 3000])
def test_what_the_fast_parser_refuses_is_read_all_the_same(other: bytes) -> None:
    body = b'{"model":"m-small","tools":[{}],"x":%b,"messages":[]}' % other
    assert read("anthropic", body) == Facts("m-small", tools=True)
    assert read("chat", body, RULES).side == "small"
    assert of_chat(Chat(body).request, body, RULES).side == "small"


RULES = [
    SideCall(wire="chat", field="model", purpose="small", equals="m-small"),
    SideCall(wire="chat", field="a.b.1.c", purpose="deep", equals=3),
    SideCall(wire="chat", field="n", purpose="number", matches="^4.$"),
    SideCall(wire="chat", field="meta", purpose="text", matches='"k": *"v'),
    SideCall(wire="responses", field="model", purpose="other", equals="x"),
]


@pytest.mark.parametrize(
    "body, side",
    [
        ({"model": "m-small", "tools": [1]}, "small"),
        ({"model": "m-smaller"}, None),
        ({"a": {"b": [0, {"c": 3}]}}, "deep"),
        ({"a": {"b": [0, {"c": True}]}}, None),
        ({"a": {"b": [0]}}, None),
        ({"a": 7}, None),
        ({"n": 42}, "number"),
        ({"n": 420}, None),
        ({"meta": {"k": "value"}}, "text"),
        ({"model": "x"}, None),
    ],
)
def test_a_profiles_own_rules_come_first(body: dict[str, Any], side: str | None) -> None:
    assert said(body, rules=RULES).side == side
    text = json.dumps(body).encode()
    assert of_chat(Chat(text).request, text, RULES).side == side
