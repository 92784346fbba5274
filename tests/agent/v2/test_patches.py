"""Left out, null, a value: none of the three is ever lost."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agent.v2 import patches
from bridge.wire import codec
from bridge.wire.codec import Raw

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
NAMES = st.sampled_from(["title", "status", "content", "_meta", "rawInput", "x"])
OBJECTS = st.dictionaries(NAMES, VALUES)


def members(value: dict[str, Any]) -> patches.Members:
    return patches.members(json.dumps(value).encode())


def values(stored: patches.Members) -> dict[str, Any]:
    return {name: codec.decode(raw) for name, raw in stored.items()}


def expected(stored: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """The rule in other words."""
    found = dict(stored)
    for name, value in change.items():
        if value is None:
            found.pop(name, None)
        elif name == "_meta" and isinstance(value, dict) and name in stored:
            old = stored[name] if isinstance(stored[name], dict) else {}
            found[name] = expected_meta(old, value)
        else:
            found[name] = value
    return found


def expected_meta(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in (old | new).items() if new.get(name, 0) is not None}
    inner_old, inner_new = old.get("_meta"), new.get("_meta")
    if isinstance(inner_new, dict) and "_meta" in old:
        found["_meta"] = expected_meta(inner_old if isinstance(inner_old, dict) else {}, inner_new)
    return found


@given(OBJECTS)
def test_what_was_read_is_written_with_all_its_states(value: dict[str, Any]) -> None:
    again = codec.decode(codec.encode(members(value)))
    assert again == value
    assert list(again) == list(value)


@given(OBJECTS, st.lists(OBJECTS, max_size=4))
def test_a_patch_leaves_clears_and_replaces(
    first: dict[str, Any], changes: list[dict[str, Any]]
) -> None:
    stored = members({name: value for name, value in first.items() if value is not None})
    model = values(stored)
    for change in changes:
        patches.apply(stored, members(change))
        model = expected(model, change)
        assert values(stored) == model


def test_a_value_keeps_its_bytes() -> None:
    found = patches.members(b'{"a": 1.0e2 , "b":[ 1,2 ],"c" : "\\u00e9", "d":null}')
    assert {name: bytes(raw) for name, raw in found.items()} == {
        "a": b"1.0e2",
        "b": b"[ 1,2 ]",
        "c": b'"\\u00e9"',
        "d": b"null",
    }


def test_what_a_strict_parser_refuses_is_read_too() -> None:
    found = patches.members(b'{"a":"\\ud83d","b":NaN}')
    assert patches.text(found["a"]) == "\ud83d"
    assert patches.is_null(found["b"])


@pytest.mark.parametrize("value", [b"[]", b"1", b'"x"', b"null"])
def test_what_is_no_object_has_no_members(value: bytes) -> None:
    assert patches.members(value) == {}


def test_the_items_of_a_list_and_of_nothing_else() -> None:
    assert [bytes(item) for item in patches.items(b'[1, {"a" : 2}]')] == [b"1", b'{"a" : 2}']
    assert [patches.text(item) for item in patches.items(b'["\\ud83d"]')] == ["\ud83d"]
    assert patches.items(b"{}") == patches.items(b"null") == []


@pytest.mark.parametrize("value", [b"{", b"", b"\xff"])
def test_what_is_no_json_is_said_to_be_none(value: bytes) -> None:
    with pytest.raises(codec.JSONError):
        patches.members(value)
    with pytest.raises(codec.JSONError):
        patches.items(value)


def test_what_a_value_is() -> None:
    assert patches.text(Raw(b'"x"')) == "x"
    assert patches.text(Raw(b"1")) is patches.text(None) is None
    assert patches.is_object(Raw(b"{}"))
    assert not patches.is_object(Raw(b"[]"))
    assert not patches.is_object(None)
    assert patches.is_null(patches.raw(None))
