"""The Responses wire of the scripted model."""

from typing import Any

from bridge.scripted import responses
from bridge.scripted.plan import Call, Plan, Tool, Turn
from bridge.wire import codec


def sent(plan: Plan) -> list[dict[str, Any]]:
    found = []
    for part in responses.events(plan, {"model": "m"}, 4):
        if isinstance(part, bytes):
            name, data = part.decode().rstrip("\n").split("\n")
            value = codec.decode(data.removeprefix("data: ").encode())
            assert name == f"event: {value['type']}"
            found.append(value)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    return found


def test_a_string_input_is_one_user_turn() -> None:
    assert responses.turns({"input": "hi"}) == [Turn("user", "hi")]


def test_items_are_read_with_and_without_a_type() -> None:
    items = [
        {"role": "user", "content": "a"},
        {"type": "message", "role": "assistant", "content": [{"text": "b"}]},
        {"type": "function_call", "name": "f"},
        {"type": "function_call_output", "output": "t"},
    ]
    expected = [Turn("user", "a"), Turn("assistant", "b"), Turn("tool", "t")]
    assert responses.turns({"input": items}) == expected


def test_tools_come_from_namespaces_too() -> None:
    tools = [
        {"type": "function", "name": "f"},
        {"type": "custom", "name": "c"},
        {"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "g"}]},
        {"type": "web_search"},
    ]
    assert responses.tools({"tools": tools}) == [
        Tool("f", {}),
        Tool("c", {}, custom=True),
        Tool("g", {}, namespace="ns"),
    ]


def test_the_stream_ends_with_the_whole_answer() -> None:
    calls = (Call(Tool("f", {}, namespace="ns"), "{}"), Call(Tool("c", {}, custom=True), "x"))
    plan = Plan("pong", reason="hm", calls=calls, words=("w0 ",))
    events = sent(plan)
    whole = responses.answer(plan, {"model": "m"}, 4)
    assert events[0]["response"]["status"] == "in_progress"
    assert events[-1] == events[-1] | {"type": "response.completed", "response": whole}
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == whole["output"]
    deltas = [e["delta"] for e in events if e["type"] == "response.output_text.delta"]
    assert "".join(deltas) == "w0 pong"
    kinds = [item["type"] for item in whole["output"]]
    assert kinds == ["reasoning", "message", "function_call", "custom_tool_call"]
    assert whole["output"][2]["namespace"] == "ns"
    assert whole["output"][3]["input"] == "x"


def test_a_null_reply_has_no_output_at_all() -> None:
    assert responses.answer(Plan(None), {}, 1)["output"] == []
