"""The codec: what any JSON text comes to, and what any value is written as."""

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire import codec
from bridge.wire.codec import JSONError, Raw

LINE_ENDS = "\u2028\u2029\x85"
TEXT = st.text(st.characters(exclude_categories=())) | st.text('\ud83d\udc00a\u2028é🎉\x85\\"\n')
# A pair of surrogates is one character in JSON, whatever Python thinks.
TEXT = TEXT.map(
    lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20
)


def finite(value: Any) -> Any:
    """The value with null where JSON has no number for it."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@given(VALUES)
def test_what_is_encoded_is_json_that_means_the_same(value: Any) -> None:
    data = codec.encode(value)
    assert json.loads(data.decode()) == finite(value)
    assert codec.decode(data) == finite(value)


@given(VALUES)
def test_whatever_the_standard_library_writes_is_decoded(value: Any) -> None:
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only)
        assert codec.decode(text.encode("utf-8", "backslashreplace")) is not None or value is None
    assert codec.decode(json.dumps(finite(value)).encode()) == finite(value)


@given(VALUES)
def test_no_frame_has_a_line_end_in_it_of_any_kind(value: Any) -> None:
    text = codec.encode(value).decode()
    assert not any(end in text for end in "\n\r" + LINE_ENDS)


@given(VALUES)
def test_a_raw_value_keeps_its_bytes_but_for_line_ends(value: Any) -> None:
    text = json.dumps(finite(value), indent=1)
    written = codec.encode({"relayed": Raw(text.encode())})
    assert json.loads(written)["relayed"] == finite(value)
    assert text.replace("\n", " ").encode() in written


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_has_not_become_null_on_either_way_of_encoding(number: float) -> None:
    assert codec.encode([number]) == b"[null]"
    assert json.loads(codec.encode([number, "\ud83d", Raw(b"NaN")])) == [None, "\ud83d", None]


@pytest.mark.parametrize("text", ["\ud83d", "x \ud83d y", "\udc00\ud83d"])
def test_lone_surrogates_survive_both_ways_as_escapes(text: str) -> None:
    data = codec.encode({text: text})
    assert data.isascii()
    assert codec.decode(data) == {text: text}


def test_a_bom_is_accepted() -> None:
    assert codec.decode(codec.BOM + b'{"a":1}') == {"a": 1}


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**70), 10**300])
def test_integers_of_any_size_are_kept(number: int) -> None:
    assert codec.decode(codec.encode([number])) == [number]


@pytest.mark.parametrize(
    "data", [b"", b" ", b"{", b"[1,]", b"'a'", b"\xff", b'"\xff"', b"nul", b'"\t"', b"1" * 5000]
)
def test_what_is_not_json_is_an_error_with_words(data: bytes) -> None:
    with pytest.raises(JSONError) as caught:
        codec.decode(data)
    assert str(caught.value)


@pytest.mark.parametrize("depth", range(900, 1020, 3))
def test_nesting_is_decoded_or_refused_and_encoded_or_refused(depth: int) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        data = opening * depth + (b"0" if opening != b"[" else b"") + closing * depth
        try:
            value = codec.decode(data)
            written = codec.encode({"deeper": {"still": value}})
        except JSONError:
            continue
        assert data in written


def test_nesting_without_end_is_an_error() -> None:
    with pytest.raises(JSONError, match="recursion"):
        codec.decode(b"[" * 100_000)
    value: list[Any] = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(JSONError, match="recursion"):
        codec.encode(value)
    with pytest.raises(JSONError, match="recursion"):
        codec.encode(["\ud83d", value])


class Place(msgspec.Struct):
    inner: list[int]


def test_a_wrong_shape_is_named_with_its_place() -> None:
    with pytest.raises(JSONError, match=r"\$\.inner\[1\]"):
        codec.decode_as(b'{"inner":[1,"two"]}', Place)
    assert codec.decode_as(Raw(b'{"inner":[1]}'), Place) == Place([1])


@pytest.mark.parametrize(
    "data", [rb'{"\ud83d":1}', rb'{"inner":["\ud83d"]}', rb'{"inner":"\ud83d"}', rb'"\ud83d"']
)
def test_a_lone_surrogate_where_it_does_not_belong_is_a_wrong_shape(data: bytes) -> None:
    with pytest.raises(JSONError):
        codec.decode_as(data, Place)


def test_mapping_tells_objects_from_the_rest() -> None:
    assert codec.mapping({"a": 1}) == {"a": 1}
    assert [codec.mapping(value) for value in ([], None, 1, "{}", True)] == [None] * 5


def test_plain_makes_builtin_values_of_everything() -> None:
    value = {"struct": Place([1]), "raw": [Raw(b'{"a":[1.5]}')], "tuple": (1, 2)}
    expected = {"struct": {"inner": [1]}, "raw": [{"a": [1.5]}], "tuple": [1, 2]}
    assert codec.plain(value) == expected
    assert json.loads(codec.encode([value, "\ud83d"]))[0] == expected
