"""Offsets of members and elements, and what counts as JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.json_scan import (
    DEPTH,
    NotJSON,
    elements,
    is_utf8,
    members,
    raw_array,
    raw_object,
    skip_space,
    skip_value,
    values,
    without_surrogates,
)
from tests.jsontext import KEYS, VALUES, read, spelt


@given(VALUES.flatmap(spelt), st.binary(max_size=3))
def test_a_value_ends_where_it_ends(text: str, behind: bytes) -> None:
    data = text.encode()
    end = skip_value(data, 0)
    assert read(data[:end]) == read(data)
    assert not data[end:].strip()


@pytest.mark.parametrize("kind", [bytes, bytearray])
@given(st.lists(st.tuples(KEYS, VALUES), max_size=6).map(tuple).flatmap(spelt))
def test_members_stand_where_they_are_said_to(kind: Any, text: str) -> None:
    data = kind(text.encode())
    start = skip_space(data, 0)
    for known in ({}, raw_object(data)):
        found = members(data, start, known)
        assert tuple((m.key, read(data[m.start : m.end])) for m in found) == read(data)
        assert all(data[m.at : m.at + 1] == b'"' for m in found)


@given(st.lists(VALUES, max_size=6).flatmap(spelt))
def test_elements_stand_where_they_are_said_to(text: str) -> None:
    data = text.encode()
    start = skip_space(data, 0)
    for known in (None, raw_array(data)):
        found = elements(data, start, known)
        assert [read(data[begin:end]) for begin, end in found] == read(data)


@given(
    st.one_of(
        st.binary(max_size=12),
        st.text('{}[]",:0123456789.eE+-tfn \\u"ax', max_size=12).map(str.encode),
        VALUES.flatmap(spelt)
        .map(str.encode)
        .flatmap(
            lambda text: st.tuples(st.just(text), st.integers(0, len(text)), st.binary(max_size=2))
        )
        .map(lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + 1 :]),
    )
)
def test_what_is_json_is_what_the_standard_library_says(data: bytes) -> None:
    try:
        text = data.decode()
        json.loads(text, parse_constant=refuse)
        good = True
    except ValueError:
        good = False
    try:
        data.decode()
        ours = skip_space(data, skip_value(data, 0)) == len(data)
    except (NotJSON, UnicodeDecodeError):
        ours = False
    assert ours == good


def refuse(word: str) -> None:
    raise ValueError(word)


def test_a_key_given_twice_has_its_own_values() -> None:
    for text in (
        b'{"a":1,"a":12}',
        b'{"a":12,"a":1}',
        b'{"a":[1],"a":[]}',
        b'{"a":1,"\\u0061":1.5}',
    ):
        found = members(text, 0, raw_object(text))
        assert [(m.key, read(text[m.start : m.end])) for m in found] == list(read(text))


@pytest.mark.parametrize("opening, closing", [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_is_bounded_and_needs_no_stack(opening: bytes, closing: bytes) -> None:
    deep = opening * DEPTH + b"1" + closing * DEPTH
    assert skip_value(deep, 0) == len(deep)
    with pytest.raises(NotJSON, match="deeper"):
        skip_value(opening + deep + closing, 0)


DEEP = b"[" * 3000 + b"]" * 3000


@pytest.mark.parametrize(
    "text, found",
    [
        (b' {"a": 1 , "b":[ ], "a":"x"} \n', {"a": b'"x"', "b": b"[ ]"}),
        (b"{}", {}),
        (b'{"a":"\\ud83d","b":1}', {"a": b'"\\ufffd"', "b": b"1"}),
        (b'{"a":"\\ud83d","b":%b}' % DEEP, {"a": b'"\\ud83d"', "b": DEEP}),
        (b'{"\\ud83d":"\\\\ud83d"}', {"\ufffd": b'"\\\\ufffd"'}),
    ],
)
def test_the_values_of_any_object_can_be_read(text: bytes, found: dict[str, bytes]) -> None:
    assert {name: bytes(raw) for name, raw in values(text).items()} == found


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"{", b'{"a":1} x', b'{"a":1}{}', b'{"a":1,}', b"\xef\xbb\xbf{}", b'{"a":NaN}',
     b'{"a":"\\ud83d"', b'{"a":01}', b"{" * 20_000],
)  # fmt: skip
def test_what_is_no_object_has_no_values(text: bytes) -> None:
    with pytest.raises(NotJSON):
        values(text)


def test_utf_8_is_told_from_what_is_none() -> None:
    assert all(map(is_utf8, (b"a", "é".encode(), bytearray("é".encode()))))
    assert not any(map(is_utf8, (b"\xff", b"\xed\xa0\x80", bytearray(b"\xc3"))))


@pytest.mark.parametrize("text", [b'{"a":"x"}', bytearray(b'"\\ud7ff \\ue000 \\ufffd"')])
def test_a_text_without_surrogates_is_not_copied(text: bytes) -> None:
    assert without_surrogates(text) is text
    assert without_surrogates(text + b"\\uD83D") == text + b"\\ufffd"
