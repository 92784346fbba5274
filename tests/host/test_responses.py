"""The shapes each generation of host parses strictly (HOST_PROTOCOL §2 to §4)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import BridgeError
from bridge.host import responses
from bridge.session.turn import TurnResult
from bridge.wire import codec, packets

A = {"operation": "prompt", "config": {"messages": []}}
B = {"id": 1, "operation": "prompt", "config": {"user_contents": []}}
FOUR = {"reply", "stop_reason", "response_metadata", "update_metadata"}
BESIDE = {"turn", "agent_stop_reason", "outcome", "usage", "truncated"}

DONE = TurnResult(
    reply="hi",
    stop_reason="end_turn",
    response_metadata={"a": 1},
    update_metadata=[{"b": 2}],
    turn=3,
    agent_stop_reason="end_turn",
    outcome="completed",
    usage={"totalTokens": 5},
)
ERROR = BridgeError(
    "the words",
    code="agent_error",
    origin="agent",
    data={"details": "why", "more": [1]},
    extra={"agent_code": -32603, "exit_code": None, "stderr": "tail"},
)
FAILED = TurnResult(reply="part", turn=4, outcome="failed", error=ERROR)


def test_a_finished_turn() -> None:
    assert responses.turn(B, DONE, allow_empty=False) == {
        "id": 1,
        "ok": True,
        "result": {
            "reply": "hi",
            "stop_reason": "end_turn",
            "response_metadata": {"a": 1},
            "update_metadata": [{"b": 2}],
        },
        "turn": 3,
        "agent_stop_reason": "end_turn",
        "outcome": "completed",
        "usage": {"totalTokens": 5},
        "truncated": False,
    }


def test_a_failed_turn_keeps_what_came_and_says_all_that_is_known() -> None:
    assert responses.turn(B, FAILED, allow_empty=False) == {
        "id": 1,
        "ok": False,
        "error": "the words",
        "code": "agent_error",
        "origin": "agent",
        "error_data": {"details": "why", "more": [1]},
        "agent_code": -32603,
        "stderr": "tail",
        "result": {
            "reply": "part",
            "stop_reason": None,
            "response_metadata": {},
            "update_metadata": [],
        },
        "turn": 4,
        "agent_stop_reason": None,
        "outcome": "failed",
        "usage": None,
        "truncated": False,
    }


@pytest.mark.parametrize("ident", [0, 1, "", "x", 1.5])
@pytest.mark.parametrize("result", [DONE, FAILED, TurnResult(error=BridgeError("no"))])
def test_a_prompt_s_result_has_exactly_four_keys(ident: Any, result: TurnResult) -> None:
    response = responses.turn(B | {"id": ident}, result, allow_empty=False)
    assert (response["id"], set(response["result"])) == (ident, FOUR)
    assert set(response) >= BESIDE


def test_a_prompt_without_an_id_that_is_not_a_chat_is_answered_with_null() -> None:
    response = responses.turn({"operation": "prompt"}, DONE, allow_empty=False)
    assert response["id"] is None
    assert set(response["result"]) == FOUR


def test_the_first_generation_gets_its_bare_reply() -> None:
    assert responses.turn(A, DONE, allow_empty=False) == {"ok": True, "reply": "hi"}
    response = responses.turn(A, FAILED, allow_empty=False)
    assert response["ok"] is False
    assert response["error"] == "the words"
    assert not {"id", "result", "reply"} & set(response)


@pytest.mark.parametrize(
    ("statuses", "stop_reason", "allowed", "fine"),
    [
        (["completed"], "end_turn", True, True),
        (["completed", "failed"], "end_turn", True, True),
        (["completed"], "end_turn", False, False),
        ([], "end_turn", True, False),
        (["completed", "pending"], "end_turn", True, False),
        (["in_progress"], "end_turn", True, False),
        (["completed"], "max_tokens", True, False),
        (["completed"], None, True, False),
    ],
)
@pytest.mark.parametrize("reply", ["", "  \n"])
def test_when_the_first_generation_may_get_an_empty_reply(
    statuses: list[str], stop_reason: str | None, allowed: bool, fine: bool, reply: str
) -> None:
    result = TurnResult(
        reply=reply, stop_reason=stop_reason, tool_statuses=statuses, outcome="completed"
    )
    response = responses.turn(A, result, allow_empty=allowed)
    if fine:
        assert response == {"ok": True, "reply": reply}
    else:
        assert response["ok"] is False
        assert str(stop_reason) in response["error"]
        assert all(status in response["error"] for status in statuses)
    native = responses.turn(B, result, allow_empty=False)
    assert (native["ok"], native["result"]["reply"]) == (True, reply)


@pytest.mark.parametrize(
    ("request_", "legacy"),
    [
        ({"operation": "shutdown"}, True),
        ({"operation": "shutdown", "id": None}, True),
        ({"operation": "shutdown", "id": 0}, False),
        ({"operation": "shutdown", "id": ""}, False),
        (A, True),
        (A | {"id": 1}, False),
        ({"operation": "status"}, False),
        ({"operation": "prompt", "config": {"user_contents": []}}, False),
        ({"operation": "prompt", "config": [1]}, False),
    ],
)
def test_the_first_generation_is_told_by_its_shape(request_: dict[str, Any], legacy: bool) -> None:
    assert responses.is_legacy(request_) is legacy
    success = responses.success(request_, {"x": 1})
    if legacy:
        assert success == {"ok": True}
    else:
        assert success == {"id": request_.get("id"), "ok": True, "result": {"x": 1}}


def test_only_an_error_s_object_is_error_data() -> None:
    for data in (None, "text", [1], 5):
        response = responses.failure(B, BridgeError("no", data=data))
        assert response == {
            "id": 1,
            "ok": False,
            "error": "no",
            "code": "internal",
            "origin": "bridge",
        }
    assert responses.failure(B, BridgeError("no", data={}))["error_data"] == {}


def test_the_end_of_a_turn_without_a_request() -> None:
    ended = responses.turn_ended(["m1", "m2"], DONE)
    assert (ended["state"], ended["message_ids"]) == ("ended", ["m1", "m2"])
    assert set(ended) == {"state", "message_ids", "result"}
    assert set(ended["result"]) == FOUR | BESIDE
    failed = responses.turn_ended([], FAILED)
    assert (failed["code"], failed["error"], "id" in failed) == ("agent_error", "the words", False)
    assert failed["result"]["reply"] == "part"


def test_truncation_is_told() -> None:
    truncated = TurnResult(outcome="truncated", stop_reason="max_tokens")
    assert responses.turn(B, truncated, allow_empty=False)["truncated"] is True
    limited = TurnResult(outcome="completed", limit="turns")
    assert responses.turn(B, limited, allow_empty=False)["truncated"] is True


MODEL_ERROR = {
    "exchange": 3,
    "status": 400,
    "error": "expected a string, got null",
    "purpose": "turn",
    "side": None,
    "recovered": False,
}
BROKEN = TurnResult(
    stop_reason="end_turn",
    outcome="model_failed",
    model_errors=[MODEL_ERROR, {**MODEL_ERROR, "purpose": "side", "error": "beside the point"}],
    open_tool_calls=["c1"],
    tool_statuses=["completed"],
)


def test_what_the_model_did_stands_beside_the_result() -> None:
    response = responses.turn(B, BROKEN, allow_empty=False)
    assert (response["ok"], response["outcome"]) == (True, "model_failed")
    assert set(response["result"]) == FOUR
    assert response["result"]["stop_reason"] == "end_turn"
    assert response["model_errors"][0] == MODEL_ERROR
    assert response["open_tool_calls"] == ["c1"]
    ended = responses.turn_ended(["m"], BROKEN)["result"]
    assert (ended["model_errors"], ended["open_tool_calls"]) == (BROKEN.model_errors, ["c1"])


def test_where_nothing_is_known_of_the_model_nothing_is_said() -> None:
    response = responses.turn(B, DONE, allow_empty=False)
    assert not {"model_errors", "open_tool_calls"} & set(response)
    known = responses.turn(B, TurnResult(model_errors=[]), allow_empty=False)
    assert known["model_errors"] == []


@pytest.mark.parametrize("allowed", [True, False])
def test_the_first_generation_is_told_what_the_model_answered(allowed: bool) -> None:
    response = responses.turn(A, BROKEN, allow_empty=allowed)
    assert (response["ok"], response["code"], response["origin"]) == (
        False,
        "model_upstream",
        "model",
    )
    assert response["error"].startswith("the model answered 400: expected a string, got null; ")
    assert "ended without visible text" in response["error"]


def test_the_first_generation_gets_the_text_that_there_is() -> None:
    spoken = TurnResult(reply="Error: 400", outcome="model_failed", model_errors=[MODEL_ERROR])
    assert responses.turn(A, spoken, allow_empty=False) == {"ok": True, "reply": "Error: 400"}


HUGE = "x" * 200_000


@given(st.sampled_from(["é", "\u2028", "\ud83d", "🎉", "a", "\x01"]), st.booleans())
def test_what_is_cut_fits_a_packet_however_it_is_escaped(text: str, mixed: bool) -> None:
    size = len(codec.encode(text * 1000 + "\ud83d" * mixed)) / 1000
    assert size * responses.CUT_REPLY < packets.CEILING


def test_a_cut_answer_keeps_the_beginning_and_its_shape() -> None:
    response = responses.turn(B, FAILED, allow_empty=False)
    response["result"]["reply"] = "y" * (responses.CUT_REPLY + 5)
    response["result"]["update_metadata"] = [{"a": HUGE}]
    response |= {"stderr": HUGE, "error_data": {"a": HUGE}, "agent_stop_reason": HUGE}
    shorter = responses.cut(response, "too large")
    assert set(shorter["result"]) == FOUR
    assert shorter["result"]["reply"] == "y" * responses.CUT_REPLY
    assert shorter["result"]["update_metadata"] == []
    assert (shorter["id"], shorter["ok"]) == (1, False)
    assert (shorter["code"], shorter["error"]) == ("limit", "too large")
    assert len(json.dumps(shorter | {"result": None})) < 1000


def test_a_cut_answer_of_the_first_generation_and_of_other_operations() -> None:
    reply = "y" * (responses.CUT_REPLY + 5)
    assert len(responses.cut({"ok": True, "reply": reply}, "no")["reply"]) == responses.CUT_REPLY
    other = responses.cut({"id": 2, "ok": True, "result": {"sessions": [HUGE]}}, "no")
    assert (other["id"], other["ok"], other["result"]) == (2, False, None)
