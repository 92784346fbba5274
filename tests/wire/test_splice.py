"""The splice: the right bytes change and no others, whatever the body looks like."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.json_scan import NotJSON, is_utf8
from bridge.wire.splice import Chat, Edits
from protocol_schemas.model import ABSENT, ChatMessage, Raw
from tests.jsontext import KEYS, VALUES, last, read, spelt

NULL = Raw(b"null")


def fill(message: ChatMessage) -> Edits:
    """The simplest of rules: null or absent content of assistants becomes ""."""
    role = json.loads(bytes(message.role) or b"0")
    if role == "assistant" and message.content in (ABSENT, NULL):
        return {"content": b'""'}
    return {}


def drop(message: ChatMessage) -> Edits:
    return {"tool_calls": None} if message.tool_calls == NULL else {}


def spliced(body: bytes, *rules: Any, top: Any = None) -> bytes | None:
    try:
        done = Chat(body).splice([(rule.__name__, rule) for rule in rules or (fill,)], top)
    except NotJSON:
        return None
    if done is None:
        return None
    result = b"".join(done.parts)
    assert len(result) == done.size
    return result


ROLES = st.sampled_from(["assistant", "assistant", "user", None])
MESSAGES = st.one_of(
    st.lists(
        st.one_of(
            st.tuples(st.just("role"), ROLES),
            st.tuples(st.just("content"), st.one_of(st.none(), VALUES)),
            st.tuples(st.just("tool_calls"), st.one_of(st.none(), VALUES)),
            st.tuples(KEYS, VALUES),
        ),
        max_size=5,
    ).map(tuple),
    VALUES,
)
BODIES = st.lists(
    st.one_of(
        st.tuples(st.just("messages"), st.lists(MESSAGES, max_size=4)), st.tuples(KEYS, VALUES)
    ),
    max_size=5,
).map(tuple)


def expected(body: Any) -> Any:
    """What the two rules make of a body, by an independent reading of them."""
    messages = last(body, "messages")
    if not isinstance(messages, list):
        return body
    position = max(index for index, (key, _) in enumerate(body) if key == "messages")
    mended = []
    for message in messages:
        if isinstance(message, tuple):
            fills = last(message, "role") == "assistant" and last(message, "content") in (None, ...)
            drops = last(message, "tool_calls") is None
            if drops:
                message = tuple(pair for pair in message if pair[0] != "tool_calls")
            if fills and last(message, "content") is ...:
                message = (*message, ("content", ""))
            elif fills:
                at = max(i for i, (key, _) in enumerate(message) if key == "content")
                message = (*message[:at], ("content", ""), *message[at + 1 :])
        mended.append(message)
    return (*body[:position], ("messages", mended), *body[position + 1 :])


@given(BODIES.flatmap(spelt))
def test_exactly_what_the_rules_say_changes(text: str) -> None:
    body = text.encode()
    before = read(body)
    wanted = expected(before)
    result = spliced(body, fill, drop)
    if wanted == before:
        assert result is None
    else:
        assert result is not None
        assert read(result) == wanted


@given(BODIES.flatmap(spelt))
def test_every_byte_outside_the_changed_spans_stays(text: str) -> None:
    body = text.encode()
    try:
        done = Chat(body).splice([("fill", fill), ("drop", drop)])
    except NotJSON:
        return
    if done is None:
        return
    kept = [bytes(part) for part in done.parts if isinstance(part, memoryview)]
    position = 0
    for part in kept:
        position = body.index(part, position) + len(part)
    put = [bytes(part) for part in done.parts if not isinstance(part, memoryview)]
    assert set(put) <= {b'""', b',"content":""'}


@pytest.mark.parametrize(
    "before, after",
    [
        ('{"role":"assistant","content":null}', '{"role":"assistant","content":""}'),
        ('{"role":"assistant" }', '{"role":"assistant","content":"" }'),
        ('{"content" : null ,"role":"assistant"}', '{"content" : "" ,"role":"assistant"}'),
        (
            '{"\\u0063ontent":null,"role":"assistant"}',
            '{"\\u0063ontent":"","role":"assistant"}',
        ),
        (
            '{"content":"a","role":"assistant","content":null}',
            '{"content":"a","role":"assistant","content":""}',
        ),
        (
            '{"role":"assistant","content":null,"x":{"content":null,"n":[1.0,1e5,-0]}}',
            '{"role":"assistant","content":"","x":{"content":null,"n":[1.0,1e5,-0]}}',
        ),
        (
            '{"role":"assistant","content":null,"s":"\\ud83d"}',
            '{"role":"assistant","content":"","s":"\\ud83d"}',
        ),
    ],
)
def test_one_message(before: str, after: str) -> None:
    frame = ' {{"messages":[{{"role":"user"}}, {} ],"tools":[{{"content":null}}]}}\n'
    assert spliced(frame.format(before).encode()) == frame.format(after).encode()


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages":[{"role":"assistant","content":null}],"x":NaN}',
        b'\xef\xbb\xbf{"messages":[{"role":"assistant","content":null}]}',
        b'{"messages":[{"role":"assistant","content":null}],"x":"\xff"}',
        b'{"messages":[{"role":"assistant","content":null}],"\xff":1}',
        b'{"messages":[{"role":"assistant","content":null}],"x":"\n"}',
        b'{"messages":[{"role":"assistant","content":null}],"x":"\\x"}',
        b'{"messages":[{"role":"assistant","content":null}]} x',
        b'{"messages":[{"role":"assistant","content":null}]',
        b'{"messages":[{"role":"assistant","content":null}],}',
        b'{"messages":[{"role":"assistant","content":null}],"x":'
        + b"[" * 10001
        + b"]" * 10001
        + b"}",
        b'[{"role":"assistant","content":null}]',
        b'{"messages":{"role":"assistant","content":null}}',
        b'{"messages":[{"role":"assistant","content":null}],"messages":[]}',
        b'{"messages":[{"role":"assistant","content":null}],"messages":null}',
        b'{"input":[{"role":"assistant","content":null}]}',
        b'{"messages":[[{"role":"assistant","content":null}]]}',
        b"",
        b"null",
        b'"messages"',
    ],
)
def test_what_is_not_json_or_no_chat_is_left_alone(body: bytes) -> None:
    assert spliced(body) is None


def test_nesting_beyond_the_fast_parser_is_no_obstacle() -> None:
    deep = b'{"x":' + b"[" * 9000 + b"]" * 9000 + b',"messages":[3,{"role":"assistant"%b}]}'
    assert spliced(deep % b"") == deep % b',"content":""'


DEEP = b"[" * 3000 + b"]" * 3000


@pytest.mark.parametrize("odd", [DEEP, b'{"\\ud83d":%b}' % DEEP, b'"\\ud83d"', b"null"])
@pytest.mark.parametrize(
    "before, after",
    [
        (
            b'{"messages":[%b,{"role":"assistant"}, %b ]}',
            b'{"messages":[%b,{"role":"assistant","content":""}, %b ]}',
        ),
        (
            b'{"messages":[{"role":"assistant"},7],"x":%b,"messages":[{"role":"assistant"},%b]}',
            b'{"messages":[{"role":"assistant"},7],"x":%b,'
            b'"messages":[{"role":"assistant","content":""},%b]}',
        ),
        (
            b'{"messages":[{"role":"assistant","content":1,"y":%b,"con\\u0074ent": null}],"z":%b}',
            b'{"messages":[{"role":"assistant","content":1,"y":%b,"con\\u0074ent": ""}],"z":%b}',
        ),
        (
            b' { "x":%b , "messages" : [ {"a":%b,"role":"assistant","content" :null} , "a" ] } \n',
            b' { "x":%b , "messages" : [ {"a":%b,"role":"assistant","content" :""} , "a" ] } \n',
        ),
    ],
)
def test_what_msgspec_takes_and_what_it_does_not_can_stand_in_one_body(
    before: bytes, after: bytes, odd: bytes
) -> None:
    assert spliced(before % (odd, odd)) == after % (odd, odd)


@pytest.mark.parametrize(
    "text", [r"\ud83d", r"\uDE00\ud83d", r"\\ud83d", r"\\\ud83d", r"\ud83d\ude00", r"\ud83dx"]
)
def test_lone_surrogates_stay_as_sent(text: str) -> None:
    body = b'{"\\ud83d":1,"messages":[{"role":"assistant","x":"%b"%b}],"\\udc00":1}'
    assert spliced(body % (text.encode(), b"")) == body % (text.encode(), b',"content":""')


def test_members_are_cut_out_with_one_comma_each() -> None:
    def gone(message: ChatMessage) -> Edits:
        return {"tool_calls": None, "refusal": None, "content": b'""'}

    for before, after in [
        ('{"tool_calls":1,"role":"a"}', '{"role":"a","content":""}'),
        ('{"role":"a", "tool_calls":1 }', '{"role":"a","content":"" }'),
        ('{"role":"a" , "refusal":1 , "x":2,"tool_calls":1}', '{"role":"a" , "x":2,"content":""}'),
        ('{"x":1,"refusal":1,"tool_calls":1,"refusal":2}', '{"x":1,"content":""}'),
        ('{ "refusal":1,"tool_calls":1 }', '{"content":""  }'),
        ("{ }", '{"content":"" }'),
    ]:
        frame = '{{"messages":[{}]}}'
        assert spliced(frame.format(before).encode(), gone) == frame.format(after).encode()


def test_the_first_rule_that_wants_a_key_wins_and_changes_are_told() -> None:
    body = b'{"messages":[{"role":"user"},{"role":"assistant","content":null,"tool_calls":null}]}'

    def other(message: ChatMessage) -> Edits:
        return {"content": b"9"} if message.role == Raw(b'"assistant"') else {}

    done = Chat(body).splice([("fill", fill), ("other", other), ("drop", drop)])
    assert done is not None
    assert [(c.rule, c.path, c.before, c.after) for c in done.changes] == [
        ("fill", "messages[1].content", "null", '""'),
        ("drop", "messages[1].tool_calls", "null", None),
    ]


def test_the_request_itself_can_be_edited() -> None:
    body = b'{"messages":[{"role":"assistant"}],"max_tokens":9,"max_tokens": 10}'
    assert spliced(body, fill, top=("limit", {"max_tokens": b"5"})) == (
        b'{"messages":[{"role":"assistant","content":""}],"max_tokens":9,"max_tokens": 5}'
    )


def test_five_hundred_edits_in_megabytes_are_parts_of_the_body_itself() -> None:
    one = b'{"role":"assistant","content":%b,"reasoning_content":"' + b"\xc3\xa9" * 5000 + b'"}'
    body = b'{"messages":[' + b",".join([one % b"null"] * 500) + b"]}"
    done = Chat(bytearray(body)).splice([("fill", fill)])
    assert done is not None
    assert b"".join(done.parts) == b'{"messages":[' + b",".join([one % b'""'] * 500) + b"]}"
    assert len(done.changes) == 500
    assert sum(len(part) for part in done.parts if not isinstance(part, memoryview)) == 1000


def test_a_long_value_is_shown_shortened() -> None:
    text = "é" * 5000
    body = f'{{"messages":[{{"role":"user","tool_calls":null,"content":"{text}"}}]}}'.encode()

    def empty(message: ChatMessage) -> Edits:
        return {"content": b'""'}

    done = Chat(body).splice([("empty", empty)])
    assert done is not None
    assert done.changes[0].before is not None
    assert done.changes[0].before.endswith("… (10002 bytes)")
    assert is_utf8(body)
