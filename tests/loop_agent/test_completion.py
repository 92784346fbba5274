"""How deltas add up, for every way in which servers send them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.loop_agent.completion import BadAnswer, Completion, error_words
from bridge.wire import codec
from protocol_schemas.chat import Chunk


def chunk(finish: str | None = None, **delta: Any) -> Chunk:
    return codec.convert({"choices": [{"delta": delta, "finish_reason": finish}]}, Chunk)


def piece(index: int | None, ident: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    return {"index": index, "id": ident, "function": {"name": name, "arguments": arguments}}


def calls(*pieces: dict[str, Any]) -> list[tuple[str, str, str]]:
    completion = Completion()
    for one in pieces:
        completion.add(chunk(tool_calls=[one]))
    return [(call.id, call.name, call.arguments) for call in completion.tool_calls]


def test_pieces_of_calls_add_up_by_their_index() -> None:
    assert calls(
        piece(0, "a", "f", '{"x'),
        piece(1, "b", "g", "{"),
        piece(0, None, None, '":1}'),
        piece(1, None, None, "}"),
    ) == [("a", "f", '{"x":1}'), ("b", "g", "{}")]


def test_calls_that_all_have_number_0_are_told_apart_by_id_and_name() -> None:
    assert calls(piece(0, "a", "f", "1"), piece(0, "b", "g", "2")) == [
        ("a", "f", "1"),
        ("b", "g", "2"),
    ]


def test_an_id_and_a_name_that_are_repeated_in_every_piece_are_one_call() -> None:
    assert calls(piece(0, "a", "f", "1"), piece(0, "a", "f", "2")) == [("a", "f", "12")]


def test_calls_without_a_number_begin_with_a_name() -> None:
    assert calls(
        piece(None, "a", "f", "1"), piece(None, None, None, "2"), piece(None, "b", "g", "3")
    ) == [("a", "f", "12"), ("b", "g", "3")]


def test_a_piece_that_belongs_to_nothing_is_a_call_of_its_own() -> None:
    ((ident, name, arguments),) = calls(piece(None, None, None, "{}"))
    assert (ident[:5], name, arguments) == ("call_", "", "{}")


def test_ids_that_are_missing_or_doubled_are_made() -> None:
    (first, _, _), (second, _, _), (third, _, _) = calls(
        piece(0, "a", "f", ""), piece(1, "a", "f", ""), piece(2, "", "f", "")
    )
    assert first == "a"
    assert len({first, second, third}) == 3


def test_a_calls_parts_come_in_any_order() -> None:
    whole = [("a", "f", '{"x":1}')]
    assert calls(piece(0, None, None, '{"x"'), piece(0, "a", "f", ":1}")) == whole
    assert calls(piece(None, None, None, '{"x"'), piece(None, "a", "f", ":1}")) == whole
    assert calls(piece(0, "a", None, None), piece(0, None, "f", '{"x":1}')) == whole
    assert calls(piece(0, None, "f", '{"x":1}'), piece(0, "a", None, None)) == whole


def test_calls_that_have_numbers_are_in_their_order() -> None:
    assert calls(piece(1, "b", "g", "2"), piece(0, "a", "f", "1")) == [
        ("a", "f", "1"),
        ("b", "g", "2"),
    ]


def test_pieces_without_a_number_find_their_call_by_its_id() -> None:
    assert calls(
        piece(None, "a", "f", '{"x"'),
        piece(None, "b", "g", '{"y"'),
        piece(None, "a", None, ":1}"),
        piece(None, "b", "g", ":2}"),
    ) == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]


def test_a_name_that_is_repeated_goes_on_with_a_call_whose_arguments_are_not_whole() -> None:
    assert len(calls(piece(None, None, "f", '{"x"'), piece(None, None, "f", ":1}"))) == 1
    assert len(calls(piece(None, None, "f", "{}"), piece(None, None, "f", "{}"))) == 2
    assert len(calls(piece(None, "a", "f", "{}"), piece(None, "a", "f", "{}"))) == 2


def test_a_name_comes_whole_or_in_pieces_before_the_arguments() -> None:
    for pieces in (("fo", "rk"), ("fo", "fork"), ("fork", "fork")):
        first, second = pieces
        assert calls(piece(0, "a", first, ""), piece(0, None, second, "{}")) == [
            ("a", "fork", "{}")
        ]


def test_arguments_sent_as_an_object_become_text() -> None:
    assert calls(piece(0, "a", "f", {"x": [1]}))[0][2] == '{"x":[1]}'


def test_arguments_of_any_other_kind_are_the_tools_to_refuse() -> None:
    assert calls(piece(0, "a", "f", [1]))[0][2] == "[1]"
    assert calls(piece(0, "a", "f", 0))[0][2] == "0"


def test_content_in_parts_is_their_text_and_thoughts() -> None:
    completion = Completion()
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    said = completion.add(chunk(content=[thinking, {"type": "text", "text": "yes"}, None, 1]))
    assert said == [("thought", "hm"), ("text", "yes")]
    assert (completion.thoughts, completion.text) == ("hm", "yes")
    assert completion.message(with_calls=False)["content"] == "yes"


def test_what_google_adds_to_a_call_goes_back() -> None:
    completion = Completion()
    extra = {"google": {"thought_signature": "abc"}}
    completion.add(chunk(tool_calls=[piece(0, "a", "f", "{}") | {"extra_content": extra}]))
    message = completion.message(with_calls=True)
    assert message["tool_calls"][0]["extra_content"] == extra


def test_the_message_never_has_null_content() -> None:
    completion = Completion()
    completion.add(chunk("tool_calls", content=None, tool_calls=[piece(0, "a", "f", "{}")]))
    assert completion.message(with_calls=True)["content"] == ""
    assert "tool_calls" not in completion.message(with_calls=False)


def test_chunks_without_choices_or_deltas_are_harmless() -> None:
    completion = Completion()
    for odd in ({}, {"choices": None}, {"choices": []}, {"choices": [{}]}):
        assert completion.add(codec.convert(odd, Chunk)) == []


@pytest.mark.parametrize(
    ("finish", "ended_by"),
    [
        ("stop", "stop"),
        ("tool_calls", "stop"),
        ("function_call", "stop"),
        ("anything", "stop"),
        ("length", "length"),
        ("content_filter", "refusal"),
    ],
)
def test_finish_reasons(finish: str, ended_by: str) -> None:
    completion = Completion()
    completion.add(chunk(finish, content="x"))
    completion.finish(announced=False)
    assert completion.complete
    assert completion.ended_by == ended_by


def test_an_answer_that_breaks_off_is_none() -> None:
    for completion, announced in [(Completion(), False), (Completion(), True)]:
        with pytest.raises(BadAnswer):
            completion.finish(announced=announced)
        assert not completion.complete
    started = Completion()
    started.add(chunk(content="x"))
    with pytest.raises(BadAnswer, match="before the answer was complete"):
        started.finish(announced=False)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"message": "slow"}, "slow"),
        ({"detail": "none"}, "none"),
        ("plain", "plain"),
        ({"code": 5}, '{"code":5}'),
        ([1], "[1]"),
        ({"message": ""}, '{"message":""}'),
    ],
)
def test_the_words_of_an_error(error: Any, words: str) -> None:
    assert error_words(error) == words
    with pytest.raises(BadAnswer):
        Completion().add(codec.convert({"error": error}, Chunk))


@given(st.lists(st.text()), st.lists(st.text()))
def test_text_and_thoughts_are_the_sum_of_their_pieces(
    texts: list[str], thoughts: list[str]
) -> None:
    completion = Completion()
    for text in texts:
        completion.add(chunk(content=text))
    for thought in thoughts:
        completion.add(chunk(reasoning_content=thought))
    assert completion.text == "".join(texts)
    assert completion.thoughts == "".join(thoughts)
