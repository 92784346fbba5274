"""The Gemini wire of the scripted model."""

from typing import Any

from bridge.scripted import gemini
from bridge.scripted.plan import Call, Plan, Tool
from bridge.wire import codec


def sent(plan: Plan) -> list[dict[str, Any]]:
    return [
        codec.decode(part.removeprefix(b"data: "))
        for part in gemini.events(plan, {"model": "m"}, 5)
        if isinstance(part, bytes)
    ]


def test_texts_and_tool_results_are_read_in_order() -> None:
    response = {"functionResponse": {"name": "f", "response": {"output": "t"}}}
    contents = [
        {"role": "user", "parts": [{"text": "a"}]},
        {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "b"}]},
        {"role": "user", "parts": [response, {"inlineData": {}}, {"text": "c"}]},
    ]
    said = [(turn.role, turn.text) for turn in gemini.turns({"contents": contents})]
    assert said == [("user", "a"), ("assistant", "b"), ("tool", "t"), ("user", "c")]


def test_what_a_tool_returned_is_found_in_each_wrapping() -> None:
    for response, text in (
        ({"content": [{"type": "text", "text": "x"}]}, '[{"type":"text","text":"x"}]'),
        ({"other": 1}, '{"other":1}'),
        (None, ""),
    ):
        part = {"functionResponse": {"name": "f", "response": response}}
        [turn] = gemini.turns({"contents": [{"role": "user", "parts": [part]}]})
        assert (turn.role, turn.text) == ("tool", text)


def test_tools_of_all_groups_are_offered() -> None:
    groups = [
        {"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"x": 1}}]},
        {"googleSearch": {}},
        {"functionDeclarations": [{"name": "g", "parameters": {"y": 1}}, {}]},
    ]
    assert gemini.tools({"tools": groups}) == [Tool("f", {"x": 1}), Tool("g", {"y": 1})]


def test_a_stream_says_what_the_whole_answer_says() -> None:
    plan = Plan("pong", reason="hm", calls=(Call(Tool("f", {}), '{"a":1}'),), words=("w0 ",))
    [whole] = gemini.answer(plan, {"model": "m"}, 5)["candidates"]
    parts = [part for event in sent(plan) for part in event["candidates"][0]["content"]["parts"]]

    def said(parts: list[dict[str, Any]]) -> str:
        return "".join(part["text"] for part in parts if "text" in part and "thought" not in part)

    assert said(parts) == said(whole["content"]["parts"]) == "w0 pong"
    assert parts[-1] == {"functionCall": {"name": "f", "args": {"a": 1}}}
    ends = [event["candidates"][0].get("finishReason") for event in sent(plan)]
    assert ends == [None, "STOP"]


def test_an_empty_reply_has_no_parts() -> None:
    assert gemini.answer(Plan(""), {}, 1)["candidates"][0]["content"]["parts"] == []


def test_errors_have_this_wire_s_shape() -> None:
    assert gemini.error(400, "no")["error"] == {
        "code": 400,
        "message": "no",
        "status": "INVALID_ARGUMENT",
    }
