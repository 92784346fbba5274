"""Reading `session/update`: never refused, nothing of it lost, its bytes kept for the host."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agent import updates
from bridge.agent.updates import Incoming
from bridge.wire import codec, jsonrpc
from bridge.wire.jsonrpc import Notification
from protocol_schemas.acp import TextBlock

HEAD = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
CHUNK = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


def line(update: Any, **more: Any) -> bytes:
    params = {"sessionId": "s", "update": update, **more}
    return codec.encode({"jsonrpc": "2.0", "method": "session/update", "params": params})


def took(data: bytes) -> Incoming | None:
    """What the client makes of a line: at first sight, or by way of the notification."""
    incoming = updates.decode(data)
    if incoming is not None:
        return incoming
    message = jsonrpc.parse(data)
    return updates.read(message) if isinstance(message, Notification) else None


def taken(data: bytes) -> Incoming:
    incoming = took(data)
    assert incoming is not None
    return incoming


def test_a_chunk_is_read_at_first_sight() -> None:
    incoming = updates.decode(line({**CHUNK, "messageId": "m"}))
    assert incoming is not None
    assert incoming.params.session_id == "s"
    update = incoming.params.update
    assert (update.kind, update.message_id) == ("agent_message_chunk", "m")
    assert update.content == TextBlock("text", "hi")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"42",
        b"not json",
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","method":"other","params":{"sessionId":"s","update":{}}}',
        b'{"jsonrpc":"1.0","method":"session/update","params":{"sessionId":"s"}}',
        line(CHUNK)[:-1] + b',"id":1}',
        b"[" * 5000,
    ],
)
def test_what_is_no_update_is_left_to_others(data: bytes) -> None:
    assert updates.decode(data) is None


@given(st.dictionaries(st.text(), JSON) | st.fixed_dictionaries({"sessionUpdate": JSON}))
def test_any_object_is_an_update_and_keeps_its_meaning(update: dict[str, Any]) -> None:
    incoming = taken(line(update))
    assert json.loads(bytes(incoming.raw())) == update
    kind = update.get("sessionUpdate")
    assert incoming.params.update.kind == (kind if isinstance(kind, str) else "")


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "content": JSON | st.fixed_dictionaries({"type": JSON, "text": JSON}),
            "messageId": JSON,
            "toolCallId": JSON,
            "status": JSON,
            "_meta": JSON,
            "extra": JSON,
        },
    ),
    JSON,
)
def test_fields_of_any_type_are_read_or_taken_as_absent(fields: dict[str, Any], meta: Any) -> None:
    incoming = taken(line({"sessionUpdate": "agent_message_chunk", **fields}, _meta=meta))
    update = incoming.params.update
    for name, read in (
        ("messageId", update.message_id),
        ("toolCallId", update.tool_call_id),
        ("status", update.status),
    ):
        assert read == (fields[name] if isinstance(fields.get(name), str) else None)
    assert update.meta == codec.mapping(fields.get("_meta"))
    assert incoming.params.meta == codec.mapping(meta)


@pytest.mark.parametrize(
    "update",
    [
        b'{"sessionUpdate":"mood_update","mood":1.0,"_meta":{"a.b/c":[1,{"d":null}]}}',
        b'{ "sessionUpdate" : "x" , "n" : 1E2, "u":"\\u00e9", "s":"\\/" }',
        '{"sessionUpdate":"x","text":"é\u2028\u2029\x85🎉"}'.encode(),
        b'{"sessionUpdate":"x","odd":"\\ud83d"}',
        b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\\udc00!"}}',
        b'{"sessionUpdate":7,"a":1.50}',
        b'{"sessionUpdate":"x","sessionUpdate":"y"}',
        b"[ 1.0 ]",
        b"null",
    ],
)
@pytest.mark.parametrize(("before", "after"), [(b"", b""), (codec.BOM, b"\r"), (b"  ", b"\t")])
def test_the_update_is_relayed_in_the_agent_s_own_bytes(
    update: bytes, before: bytes, after: bytes
) -> None:
    assert bytes(taken(before + HEAD + update + b"}}" + after).raw()) == update


def test_what_only_python_calls_json_is_relayed_as_json() -> None:
    incoming = taken(HEAD + b'{"sessionUpdate":"x","used":NaN,"rest":[-Infinity,"\\ud83d"]}}}')
    raw = bytes(incoming.raw())
    assert json.loads(raw) == {"sessionUpdate": "x", "used": None, "rest": [None, "\ud83d"]}
    assert b"NaN" not in raw


def test_bytes_that_are_not_utf_8_never_reach_the_host() -> None:
    chunk = b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\xff"}}}}'
    assert took(HEAD + chunk) is None
    unseen = updates.decode(HEAD + b'{"sessionUpdate":"x","unknown":"\xff"}}}')
    if unseen is not None:
        with pytest.raises(codec.JSONError):
            unseen.raw()


@pytest.mark.parametrize("depth", range(900, 1011, 5))
def test_nesting_is_relayed_or_refused_and_never_raises_anything_else(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    for name in (b"unknown", b"content", b"_meta", b"messageId"):
        data = HEAD + b'{"sessionUpdate":"x","%s":%s}}}' % (name, deep)
        try:
            incoming = took(data)
            raw = None if incoming is None else bytes(incoming.raw())
        except codec.JSONError:
            continue
        assert raw is not None
        assert deep in raw


@pytest.mark.parametrize("params", [b"{}", b"[]", b"null", b'{"sessionId":5,"update":{}}'])
def test_an_update_for_nobody_is_none(params: bytes) -> None:
    assert took(b'{"jsonrpc":"2.0","method":"session/update","params":%s}' % params) is None


def test_metadata_is_both_with_the_update_s_own_winning() -> None:
    both = taken(line({**CHUNK, "_meta": {"a": 1, "b": 1}}, _meta={"b": 2, "c": 2}))
    assert both.metadata() == {"a": 1, "b": 1, "c": 2}
    assert taken(line({**CHUNK, "_meta": {"a": 1}})).metadata() == {"a": 1}
    assert taken(line(CHUNK, _meta={"c": 2})).metadata() == {"c": 2}
    assert taken(line(CHUNK)).metadata() is None
    odd = {"update": {"sessionUpdate": "no"}, "session_id": "no", "sessionId": "no"}
    assert taken(line(CHUNK, _meta=odd)).params.session_id == "s"


@pytest.mark.parametrize("more", ['"update":null', '"_meta":{}', '"x":"\\ud83d"', '"x":NaN'])
def test_a_notification_without_an_update_is_told_as_null(more: str) -> None:
    head = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",'
    incoming = taken(f"{head}{more}}}}}".encode())
    assert (incoming.params.update.kind, bytes(incoming.raw())) == ("", b"null")
