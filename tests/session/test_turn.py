"""What one turn comes to, whatever order its updates, its answer and its end come in."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import BridgeError
from bridge.session.turn import Stop, Turn, TurnResult
from protocol_schemas.acp import PromptResult
from protocol_schemas.model import ModelError, ModelTurn
from tests.session.updating import chunk, incoming

IDS = st.none() | st.sampled_from(["a", "b", "c"])
DEATH = BridgeError("it died", code="agent_exited", origin="agent")


def turn(*chunks: tuple[str, str | None]) -> Turn:
    made = Turn(7)
    for text, message_id in chunks:
        made.update(chunk(text, message_id))
    return made


def last_message(chunks: list[tuple[str, str | None]]) -> str:
    """The rule in other words: find where the last message began, then join from there."""
    begin, current = 0, None
    for index, (_, message_id) in enumerate(chunks):
        if message_id is not None and message_id != current:
            begin, current = index, message_id
    return "".join(text for text, _ in chunks[begin:])


@given(st.lists(st.tuples(st.text(min_size=1, max_size=4), IDS)))
def test_the_reply_is_the_text_of_the_last_message(chunks: list[tuple[str, str | None]]) -> None:
    result = turn(*chunks).result()
    assert result.reply == last_message(chunks)
    assert result.visible == bool(result.reply.strip())


@pytest.mark.parametrize(
    ("chunks", "reply"),
    [
        ([], ""),
        ([("al", None), ("pha", None)], "alpha"),
        ([("old", "1"), ("new", "2")], "new"),
        ([("a", "1"), ("b", "1")], "ab"),
        ([("a", "1"), ("b", None), ("c", "1")], "abc"),
        ([("a", None), ("b", "1")], "b"),
        ([("a", "1"), ("b", "2"), ("c", None)], "bc"),
    ],
)
def test_chunks_with_and_without_ids(chunks: list[tuple[str, str | None]], reply: str) -> None:
    assert turn(*chunks).result().reply == reply


@pytest.mark.parametrize(
    "update",
    [
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "no"}},
        {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "no"}},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "no"}},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "vendor", "text": "no"}},
        {"sessionUpdate": "agent_message_chunk", "content": "no"},
        {"sessionUpdate": "agent_message_chunk"},
        {"sessionUpdate": "mood_update", "content": {"type": "text", "text": "no"}},
        {"sessionUpdate": "notice", "content": {"type": "text", "text": "no"}},
    ],
)
def test_only_an_agent_s_text_is_reply(update: dict[str, Any]) -> None:
    made = turn(("yes", None))
    made.update(incoming(update))
    assert made.result().reply == "yes"


def test_a_long_reply_is_gathered_in_linear_time() -> None:
    made = Turn(1)
    piece = chunk("x" * 64)
    for _ in range(50_000):
        made.update(piece)
    assert len(made.result().reply) == 64 * 50_000


def test_the_statuses_of_the_tool_calls_are_the_last_ones() -> None:
    made = turn()
    for kind, name, status in [
        ("tool_call", "1", None),
        ("tool_call", "2", "in_progress"),
        ("tool_call_update", "2", "completed"),
        ("tool_call_update", "2", None),
        ("tool_call_update", "3", "failed"),
        ("vendor_call", "4", "completed"),
    ]:
        more = {} if status is None else {"status": status}
        made.update(incoming({"sessionUpdate": kind, "toolCallId": name, **more}))
    assert made.result().tool_statuses == ["pending", "completed", "failed"]


def test_metadata_is_one_object_an_update_that_has_any_in_order() -> None:
    made = turn(("plain", None))
    made.update(incoming({"sessionUpdate": "x", "_meta": {"n": 1}}))
    made.update(incoming({"sessionUpdate": "x"}, _meta={"n": 2}))
    made.update(incoming({"sessionUpdate": "x", "_meta": {"n": 3}}, _meta={"n": 0, "m": 3}))
    made.update(incoming({"sessionUpdate": "x", "_meta": {}}))
    assert made.result().update_metadata == [{"n": 1}, {"n": 2}, {"n": 3, "m": 3}]


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("end_turn", "completed"),
        ("max_tokens", "truncated"),
        ("max_turn_requests", "truncated"),
        ("refusal", "refused"),
        ("cancelled", "cancelled"),
        ("a_new_one", "completed"),
        (None, "completed"),
    ],
)
def test_a_stop_reason_of_any_kind_is_kept(reason: str | None, outcome: str) -> None:
    made = turn(("hi", None))
    made.answer(PromptResult(stop_reason=reason, usage={"totalTokens": 3}, meta={"a": 1}))
    result = made.result()
    assert (result.stop_reason, result.agent_stop_reason) == (reason, reason)
    assert (result.outcome, result.error, result.turn) == (outcome, None, 7)
    assert (result.response_metadata, result.usage) == ({"a": 1}, {"totalTokens": 3})


@pytest.mark.parametrize("reason", ["end_turn", "cancelled", "refusal", None])
def test_a_cancelled_turn_is_cancelled_whatever_the_agent_calls_it(reason: str | None) -> None:
    made = turn(("part", None))
    assert made.stop("cancelled") is True
    made.answer(PromptResult(stop_reason=reason))
    result = made.result()
    assert (result.stop_reason, result.agent_stop_reason) == ("cancelled", reason)
    assert (result.outcome, result.error, result.reply) == ("cancelled", None, "part")


def test_a_turn_that_hit_a_deadline_says_which_and_what_came() -> None:
    made = turn(("part", None))
    made.stop("timeout", "the words")
    made.answer(PromptResult(stop_reason="end_turn"))
    result = made.result()
    assert (result.stop_reason, result.agent_stop_reason) == (None, "end_turn")
    assert (result.outcome, result.reply) == ("timeout", "part")
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("timeout", "the words")


@pytest.mark.parametrize("first", ["cancelled", "timeout"])
def test_the_first_stop_counts(first: Stop) -> None:
    made = turn()
    assert made.stop(first, "first")
    assert not made.stop("cancelled", "second")
    assert not made.stop("timeout", "third")
    assert made.result().outcome == first


def test_a_stopped_turn_whose_agent_died_is_still_what_it_was_stopped_for() -> None:
    made = turn(("part", None))
    made.stop("cancelled")
    made.fail(DEATH)
    result = made.result()
    assert (result.outcome, result.error, result.reply) == ("cancelled", None, "part")


def test_a_failed_turn_keeps_its_text_and_names_the_error() -> None:
    made = turn(("part", None))
    made.fail(DEATH)
    result = made.result()
    assert (result.outcome, result.error, result.stop_reason) == ("failed", DEATH, None)
    assert result.reply == "part"


@pytest.mark.parametrize(
    ("usage", "kept"),
    [
        ({"totalTokens": 0}, False),
        ({"totalTokens": 0, "inputTokens": 0, "cachedReadTokens": None}, False),
        ({}, False),
        ({"totalTokens": 0, "inputTokens": 5}, True),
        (None, False),
    ],
)
def test_zero_usage_of_a_stopped_turn_is_no_measurement(
    usage: dict[str, Any] | None, kept: bool
) -> None:
    for why in ("cancelled", "timeout"):
        made = turn()
        made.stop(why)
        made.answer(PromptResult(stop_reason="end_turn", usage=usage))
        assert made.result().usage == (usage if kept else None)
    finished = turn()
    finished.answer(PromptResult(stop_reason="end_turn", usage=usage))
    assert finished.result().usage == usage


@pytest.mark.parametrize(
    ("text", "reason", "stop", "wants"),
    [
        ("", "end_turn", None, True),
        (" \n", "end_turn", None, True),
        ("hi", "end_turn", None, False),
        ("", "max_tokens", None, True),
        ("", None, None, True),
        ("", "cancelled", None, False),
        ("", "refusal", None, False),
        ("", "end_turn", "cancelled", False),
        ("", "end_turn", "timeout", False),
    ],
)
def test_when_late_text_is_waited_for(
    text: str, reason: str | None, stop: Stop | None, wants: bool
) -> None:
    made = turn((text, None)) if text else turn()
    assert not made.wants_text
    if stop is not None:
        made.stop(stop)
    made.answer(PromptResult(stop_reason=reason))
    assert made.answered
    assert made.wants_text is wants
    made.update(chunk("late"))
    assert not made.wants_text
    assert made.visible


def test_tool_calls_without_a_final_status_are_named() -> None:
    made = turn()
    for name, status in [("1", None), ("2", "in_progress"), ("3", "completed"), ("4", "failed")]:
        more = {} if status is None else {"status": status}
        made.update(incoming({"sessionUpdate": "tool_call", "toolCallId": name, **more}))
    made.stop("cancelled")
    assert made.result().open_tool_calls == ["1", "2"]


FAULT = ModelError(3, 400, "no", "turn")


@pytest.mark.parametrize(
    ("text", "reason", "last", "outcome"),
    [
        ("", "end_turn", "failed", "model_failed"),
        ("Retrying...", "end_turn", "failed", "model_failed"),
        ("", None, "failed", "model_failed"),
        ("", "end_turn", "answered", "empty"),
        (" \n", "end_turn", "answered", "empty"),
        ("hi", "end_turn", "answered", "completed"),
        ("", "end_turn", None, "completed"),
        ("", "max_tokens", "failed", "truncated"),
        ("", "refusal", "answered", "refused"),
        ("", "cancelled", "failed", "cancelled"),
    ],
)
def test_a_turn_that_the_agent_ended_normally_is_what_its_model_made_of_it(
    text: str, reason: str | None, last: Any, outcome: str
) -> None:
    made = turn((text, None)) if text else turn()
    made.answer(PromptResult(stop_reason=reason))
    result = made.result(ModelTurn([FAULT], last))
    assert (result.outcome, result.stop_reason, result.error) == (outcome, reason, None)
    assert result.reply == text
    assert result.model_errors == [
        {
            "exchange": 3,
            "status": 400,
            "error": "no",
            "purpose": "turn",
            "side": None,
            "recovered": False,
        }
    ]


def test_a_turn_that_was_stopped_or_failed_stays_that_whatever_its_model_did() -> None:
    stopped, dead = turn(), turn()
    stopped.stop("cancelled")
    stopped.answer(PromptResult(stop_reason="end_turn"))
    dead.fail(DEATH)
    for made, outcome in ((stopped, "cancelled"), (dead, "failed")):
        result = made.result(ModelTurn([], "failed"))
        assert (result.outcome, result.model_errors) == (outcome, [])


def test_without_the_model_proxy_nothing_is_claimed() -> None:
    made = turn()
    made.answer(PromptResult(stop_reason="end_turn"))
    assert (made.result().model_errors, made.result().outcome) == (None, "completed")


def test_a_new_message_that_is_blank_makes_the_turn_invisible_again() -> None:
    made = turn(("text", "1"), ("  ", "2"))
    made.answer(PromptResult(stop_reason="end_turn"))
    assert (made.visible, made.wants_text) == (False, True)
    assert made.result().visible is False


def test_every_update_is_a_sign_of_life() -> None:
    made = turn()
    assert made.stirred is False
    made.update(incoming({"sessionUpdate": "whatever"}))
    assert made.stirred is True


def test_two_results_share_nothing() -> None:
    one, two = TurnResult(), TurnResult()
    one.response_metadata["a"] = 1
    one.update_metadata.append({})
    assert (two.response_metadata, two.update_metadata) == ({}, [])
