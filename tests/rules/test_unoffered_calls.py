"""Which calls go, and what that makes of the rest."""

from typing import Any

import pytest

from bridge.rules.unoffered_calls import Seen, in_answer, in_chunk, offered

NAMES = frozenset({"good", "fine"})


def call(name: Any, index: int | None = None, **more: Any) -> dict[str, Any]:
    made = {"id": "1", "type": "function", "function": {"name": name, "arguments": "{}"}, **more}
    return made if index is None else {"index": index, **made}


def answer(*calls: Any, reason: str = "tool_calls") -> dict[str, Any]:
    return {"choices": [{"message": {"tool_calls": list(calls)}, "finish_reason": reason}]}


def chunk(*calls: Any, reason: str | None = None, which: int = 0) -> dict[str, Any]:
    delta = {"tool_calls": list(calls)} if calls else {}
    return {"choices": [{"index": which, "delta": delta, "finish_reason": reason}]}


def test_names_are_those_of_tools_of_any_type_and_of_functions() -> None:
    tools = [
        {"type": "function", "function": {"name": "a"}},
        {"function": {"name": "b"}},
        {"type": "custom", "custom": {"name": "c"}},
        {"type": "web_search", "name": "d"},
        {"type": "function", "function": {"name": 7}},
        "odd",
        None,
    ]
    assert offered(tools, [{"name": "e"}, 3]) == {"a", "b", "c", "d", "e"}
    assert offered(None, "x") == frozenset()


PLACE = ("choices", 0, "message", "tool_calls")


@pytest.mark.parametrize(
    "value, edits",
    [
        (answer(call("good"), call("fine")), {}),
        (answer(call("good"), call("bad")), {(*PLACE, 1): None}),
        (answer(call("bad")), {PLACE: None, ("choices", 0, "finish_reason"): b'"stop"'}),
        (answer(call("bad"), reason="length"), {PLACE: None}),
        (answer(call(None)), {}),
        (answer("odd", 7), {}),
        (answer({"type": "custom", "custom": {"name": "bad"}}, call("good")), {(*PLACE, 0): None}),
        ({"choices": "x"}, {}),
        ({"choices": [None, {"message": []}]}, {}),
        ([], {}),
        (None, {}),
    ],
)
def test_a_whole_answer(value: Any, edits: Any) -> None:
    assert in_answer(value, NAMES) == edits


DELTA = ("choices", 0, "delta", "tool_calls")


def test_a_stream_loses_all_pieces_of_a_call_and_the_next_ones_move_up() -> None:
    seen: Seen = {}
    more = {"index": 0, "function": {"arguments": "x"}}
    assert in_chunk(chunk(call("bad", 0)), NAMES, seen) == {DELTA: None}
    assert in_chunk(chunk(more), NAMES, seen) == {DELTA: None}
    assert in_chunk(chunk(call("good", 1)), NAMES, seen) == {(*DELTA, 0, "index"): b"0"}
    assert in_chunk(chunk({**more, "index": 1}), NAMES, seen) == {(*DELTA, 0, "index"): b"0"}
    both = in_chunk(chunk(call("bad", 2), call("fine", 3)), NAMES, seen)
    assert both == {(*DELTA, 0): None, (*DELTA, 1, "index"): b"1"}
    assert in_chunk(chunk(reason="tool_calls"), NAMES, seen) == {}


def test_a_stream_of_nothing_but_unoffered_calls_stops() -> None:
    seen: Seen = {}
    in_chunk(chunk(call("bad", 0)), NAMES, seen)
    ended = {("choices", 0, "finish_reason"): b'"stop"'}
    assert in_chunk(chunk(reason="tool_calls"), NAMES, seen) == ended
    assert in_chunk(chunk(reason="tool_calls", which=1), NAMES, seen) == {}


def test_calls_that_share_an_index_are_told_apart_by_their_ids() -> None:
    seen: Seen = {}
    first, second, third = (call(name, 0, id=name) for name in ("bad", "good", "worse"))
    assert in_chunk(chunk(first, second), NAMES, seen) == {(*DELTA, 0): None}
    assert in_chunk(chunk({"index": 0, "function": {"arguments": "x"}}), NAMES, seen) == {}
    assert in_chunk(chunk(third), NAMES, seen) == {DELTA: None}
    assert in_chunk(chunk(call("fine", id="f")), NAMES, seen) == {}
    assert in_chunk(chunk(reason="tool_calls"), NAMES, seen) == {}


@pytest.mark.parametrize("piece", [{"id": "2"}, {"id": "1"}, {"id": None}, {"id": ""}, {}])
def test_a_piece_without_a_name_goes_on_whatever_its_id(piece: dict[str, Any]) -> None:
    seen: Seen = {}
    assert in_chunk(chunk(call("bad", 0)), NAMES, seen) == {DELTA: None}
    more = {"index": 0, "function": {"name": None, "arguments": "x"}, **piece}
    assert in_chunk(chunk(more), NAMES, seen) == {DELTA: None}


def test_indices_that_begin_elsewhere_stay_where_nothing_goes() -> None:
    seen: Seen = {}
    assert in_chunk(chunk(call("good", 1), call("fine", 3)), NAMES, seen) == {}
    assert in_chunk(chunk(call("bad", 4), call("good", 5)), NAMES, seen) == {
        (*DELTA, 0): None,
        (*DELTA, 1, "index"): b"4",
    }


def test_choices_are_kept_apart() -> None:
    seen: Seen = {}
    assert in_chunk(chunk(call("bad", 0), which=0), NAMES, seen) == {DELTA: None}
    assert in_chunk(chunk(call("good", 0), which=1), NAMES, seen) == {}


def test_a_stream_that_is_as_it_should_be_needs_nothing() -> None:
    seen: Seen = {}
    assert in_chunk(chunk(call("good", 0)), NAMES, seen) == {}
    assert in_chunk(chunk({"index": 0, "function": {"arguments": "x"}}), NAMES, seen) == {}
    assert in_chunk(chunk(), NAMES, seen) == {}
    assert in_chunk("odd", NAMES, seen) == {}
