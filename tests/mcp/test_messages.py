"""Messages keep the bytes of what is relayed; what cannot be read is told apart from answers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp import messages
from bridge.mcp.messages import Answer
from bridge.wire import codec, jsonrpc
from bridge.wire.codec import Raw

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=8,
)


def answered(line: bytes) -> Answer | None:
    message = jsonrpc.parse(line)
    assert isinstance(message, jsonrpc.Response)
    return messages.answer(message)


def test_members_keep_their_bytes() -> None:
    found = messages.members(b'{"a": 1.0, "b":{"x" : "\\u00e9"},"c":1e2}')
    assert found is not None
    assert {key: bytes(value) for key, value in found.items()} == {
        "a": b"1.0",
        "b": b'{"x" : "\\u00e9"}',
        "c": b"1e2",
    }


@pytest.mark.parametrize("text", [b"[1]", b"null", b'"a"', b"{", b"", b"{]"])
def test_what_is_no_object_has_no_members(text: bytes) -> None:
    assert messages.members(text) is None


def test_members_survive_lone_surrogates_in_keys() -> None:
    found = messages.members(b'{"\\ud83d":1,"b":"\\ud83d"}')
    assert found is not None
    assert bytes(found["\ud83d"]) == b"1"


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_members_are_the_object(value: dict[str, Any]) -> None:
    found = messages.members(codec.encode(value))
    assert found is not None
    assert {key: codec.decode(item) for key, item in found.items()} == value


def test_items_keep_their_bytes() -> None:
    assert messages.items(b'[1.0, {"a" : 1}]') == [Raw(b"1.0"), Raw(b'{"a" : 1}')]
    assert messages.items(b'["\\ud83d"]') == [Raw(b'"\\ud83d"')]
    assert messages.items(b"{}") is None
    assert messages.items(b"[") is None


def test_a_body_is_one_message_or_a_batch() -> None:
    assert messages.split(b'{"a":1}') == [b'{"a":1}']
    assert messages.split(b' [{"a": 1},{"b":2}]') == [b'{"a": 1}', b'{"b":2}']
    assert messages.split(b"[{") == [b"[{"]
    assert messages.split(b"[]") == [b"[]"]


def test_a_response_carries_the_askers_id_and_the_results_bytes() -> None:
    result = Raw(b'{"content":[],"x":1.0}')
    assert messages.response(b'"7"', Answer(result)) == (
        b'{"jsonrpc":"2.0","id":"7","result":{"content":[],"x":1.0}}'
    )
    refusal = messages.error(-32602, "no", {"a": 1})
    assert messages.response(b"7", refusal) == (
        b'{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no","data":{"a":1}}}'
    )


def test_a_relayed_line_has_no_line_end_in_it() -> None:
    pretty = Raw(b'{\n  "content": []\r\n}')
    assert b"\n" not in messages.response(b"1", Answer(pretty))


def test_errors_are_relayed_as_they_came() -> None:
    error = b'{"code":-32050,"message":"m","data":[1],"more":{"k":1.0}}'
    found = answered(b'{"jsonrpc":"2.0","id":1,"error":' + error + b"}")
    assert found is not None
    assert found.error is not None
    assert bytes(found.error) == error
    assert found.code == -32050


@pytest.mark.parametrize(
    "error", [b'"boom"', b"7", b'{"message":"m"}', b'{"code":"x"}', b'{"code":1}']
)
def test_a_misshapen_error_is_bent_into_shape(error: bytes) -> None:
    found = answered(b'{"jsonrpc":"2.0","id":1,"error":' + error + b"}")
    assert found is not None
    assert found.error is not None
    shaped = codec.decode(found.error)
    assert isinstance(shaped["code"], int)
    assert isinstance(shaped["message"], str)


def test_a_response_with_nothing_in_it_is_no_answer() -> None:
    assert answered(b'{"jsonrpc":"2.0","id":1}') is None
    assert answered(b'{"jsonrpc":"2.0","id":1,"error":null}') is not None


def test_a_member_is_added_at_the_front_if_it_is_missing() -> None:
    add = messages.with_member
    assert bytes(add(Raw(b"{}"), "r", b'"c"')) == b'{"r":"c"}'
    assert bytes(add(Raw(b'{ "a": 1.0}'), "r", b"1")) == b'{"r":1,"a": 1.0}'
    assert bytes(add(Raw(b'{"r":2}'), "r", b"1")) == b'{"r":2}'
    assert bytes(add(Raw(b"[]"), "r", b"1")) == b"[]"


@given(st.dictionaries(st.text(), json_values, max_size=4), st.text(max_size=3))
def test_an_added_member_changes_nothing_else(value: dict[str, Any], name: str) -> None:
    if not name.isascii() or '"' in name or "\\" in name or not name.isprintable():
        name = "plain"
    found = codec.decode(messages.with_member(Raw(codec.encode(value)), name, b"1"))
    assert found == {name: 1, **value}


def test_what_a_server_sent_is_text_whatever_its_bytes_are() -> None:
    assert messages.sent(b'[{"a":"\xe9"},{"b":1}]') == [b'{"a":"\xef\xbf\xbd"}', b'{"b":1}']
    assert messages.sent("é".encode()) == ["é".encode()]
