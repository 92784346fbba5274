"""Edits by path: exactly those values, every other byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.json_edit import edit
from bridge.wire.json_scan import NotJSON
from tests.jsontext import VALUES, read, spelt


def edited(text: str, wishes: dict) -> str:
    return b"".join(edit(text.encode(), "rule", wishes).parts).decode()


@pytest.mark.parametrize(
    "text, wishes, expected",
    [
        ('{"a": [1, 2 ,3], "b": 3}', {("a", 1): None, ("b",): b"4"}, '{"a": [1, 3], "b": 4}'),
        ('{"a":[ 1 , 2 ]}', {("a", 1): None}, '{"a":[ 1 ]}'),
        ('{"a":[1,2]}', {("a", 0): None, ("a", 1): None}, '{"a":[]}'),
        ('{"a":[{"i":1},{"i":2}]}', {("a", 0): None, ("a", 1, "i"): b"0"}, '{"a":[{"i":0}]}'),
        ('{"a":1}', {("b",): b"2"}, '{"a":1,"b":2}'),
        ('{"a":1,"a":2}', {("a",): b"3"}, '{"a":1,"a":3}'),
        ('[[1.0,{"x":null}]]', {(0, 1, "x"): b'""'}, '[[1.0,{"x":""}]]'),
        ('{"a":1}', {("b", 0): b"2", ("a", "c"): b"3"}, '{"a":1}'),
        ("[1]", {(5,): None, (7,): b"1"}, "[1]"),
    ],
)
def test_values_are_put_and_cut_where_the_path_says(text, wishes, expected) -> None:
    assert edited(text, wishes) == expected


def test_changes_are_told_by_their_place() -> None:
    done = edit(b'{"a":[{"b":1},2]}', "r", {("a", 0, "b"): b"9", ("a", 1): None})
    told = [(c.rule, c.path, c.before, c.after) for c in done.changes]
    assert told == [("r", "a.1", "2", None), ("r", "a.0.b", "1", "9")]


@pytest.mark.parametrize("text", [b'{"a":', b'{"a":"\xff"}', b"{a:1}"])
def test_what_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(NotJSON):
        edit(text, "r", {("a",): b"1"})


@given(st.lists(VALUES, min_size=1, max_size=5).flatmap(spelt), st.data())
def test_an_element_cut_out_leaves_the_others(text: str, data) -> None:
    before = read(text.encode())
    index = data.draw(st.integers(0, len(before) - 1))
    after = edited(text, {(index,): None})
    assert read(after.encode()) == before[:index] + before[index + 1 :]
