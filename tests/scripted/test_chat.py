"""The chat completions wire of the scripted model."""

from typing import Any

import pytest

from bridge.scripted import chat
from bridge.scripted.plan import Call, Plan, Tool, Turn
from bridge.wire import codec

CALL = Call(Tool("echo", {}), '{"a":1}')


def sent(plan: Plan, **body: Any) -> list[dict[str, Any]]:
    parts = [part for part in chat.events(plan, body, 3) if isinstance(part, bytes)]
    assert parts[-1] == b"data: [DONE]\n\n"
    return [codec.decode(part.removeprefix(b"data: ")) for part in parts[:-1]]


def test_messages_are_read_in_order_with_their_parts() -> None:
    messages = [
        {"role": "system", "content": "no"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None},
        {"role": "tool", "content": "t"},
    ]
    expected = [Turn("user", "a"), Turn("user", "b"), Turn("assistant"), Turn("tool", "t")]
    assert chat.turns({"messages": messages}) == expected


def test_tools_are_those_offered() -> None:
    offered = [{"type": "function", "function": {"name": "echo", "parameters": {"x": 1}}}, {}]
    assert chat.tools({"tools": offered}) == [Tool("echo", {"x": 1})]


def test_a_stream_says_what_the_whole_answer_says() -> None:
    plan = Plan("pong", reason="hm", calls=(CALL, CALL), words=("w0 ",))
    whole = chat.answer(plan, {"model": "m"}, 3)["choices"][0]
    deltas = [event["choices"][0]["delta"] for event in sent(plan, model="m")]
    text = "".join(delta.get("content") or "" for delta in deltas)
    assert text == whole["message"]["content"] == "w0 pong"
    assert [d["reasoning_content"] for d in deltas if "reasoning_content" in d] == ["hm"]
    calls = [d["tool_calls"][0] for d in deltas if "tool_calls" in d]
    assert [c["id"] for c in calls if "id" in c] == [
        call["id"] for call in whole["message"]["tool_calls"]
    ]
    assert [c["function"]["arguments"] for c in calls] == ["", '{"a":1}'] * 2
    assert sent(plan)[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_null_reply_is_null_both_ways() -> None:
    assert chat.answer(Plan(None), {}, 1)["choices"][0]["message"]["content"] is None
    assert sent(Plan(None))[0]["choices"][0]["delta"]["content"] is None


def test_usage_comes_last_when_asked_for() -> None:
    assert sent(Plan("a"), stream_options={"include_usage": True})[-1]["usage"] == chat.USAGE
    assert all("usage" not in event for event in sent(Plan("a")))


@pytest.mark.parametrize(
    ("strict", "message", "refused"),
    [
        ("null", {"content": None}, True),
        ("null", {"content": None, "tool_calls": [1]}, True),
        ("null", {}, True),
        ("null", {"content": ""}, False),
        ("empty", {"content": "", "tool_calls": [1]}, True),
        ("empty", {"content": None, "tool_calls": [1]}, False),
        ("empty", {"content": ""}, False),
        ("", {"content": None}, False),
    ],
)
def test_a_strict_provider_refuses_what_it_names(
    strict: str, message: dict[str, Any], refused: bool
) -> None:
    body = {"messages": [{"role": "user", "content": None}, {"role": "assistant", **message}]}
    refusal = chat.refusal(body, strict)
    assert (refusal is not None) is refused
    assert refusal is None or "messages[1].content" in refusal["error"]["message"]
