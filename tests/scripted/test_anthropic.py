"""The Anthropic Messages wire of the scripted model."""

from typing import Any

from bridge.scripted import anthropic
from bridge.scripted.plan import Call, Plan, Tool
from bridge.wire import codec


def sent(plan: Plan) -> list[dict[str, Any]]:
    found = []
    for part in anthropic.events(plan, {}, 5):
        if isinstance(part, bytes):
            name, data = part.decode().rstrip("\n").split("\n")
            value = codec.decode(data.removeprefix("data: ").encode())
            assert name == f"event: {value['type']}"
            found.append(value)
    return found


def test_texts_and_tool_results_are_read_in_order() -> None:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
        {"role": "system", "content": "no"},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "content": [{"type": "text", "text": "t"}]},
                {"type": "text", "text": "c"},
            ],
        },
    ]
    said = [(turn.role, turn.text) for turn in anthropic.turns({"messages": messages})]
    assert said == [("user", "a"), ("assistant", "b"), ("tool", "t"), ("user", "c")]


def test_tools_are_those_with_a_name() -> None:
    tools = [{"name": "f", "input_schema": {"x": 1}}, {"type": "server_tool"}]
    assert anthropic.tools({"tools": tools}) == [Tool("f", {"x": 1})]


def test_a_stream_says_what_the_whole_answer_says() -> None:
    plan = Plan("pong", reason="hm", calls=(Call(Tool("f", {}), '{"a":1}'),), words=("w0 ",))
    whole = anthropic.answer(plan, {}, 5)
    assert [block["type"] for block in whole["content"]] == ["thinking", "text", "tool_use"]
    assert whole["stop_reason"] == "tool_use"
    deltas = [e["delta"] for e in sent(plan) if e["type"] == "content_block_delta"]
    text = "".join(delta["text"] for delta in deltas if delta["type"] == "text_delta")
    assert text == whole["content"][1]["text"] == "w0 pong"
    assert deltas[-1]["partial_json"] == '{"a":1}'
    assert sent(plan)[-2]["delta"]["stop_reason"] == "tool_use"


def test_an_empty_reply_has_no_blocks() -> None:
    assert anthropic.answer(Plan(""), {}, 1)["content"] == []
    assert anthropic.answer(Plan(None), {}, 1)["stop_reason"] == "end_turn"


def test_errors_have_this_wire_s_shape() -> None:
    assert anthropic.error(500, "no")["error"] == {"type": "api_error", "message": "no"}
