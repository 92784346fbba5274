"""Calls taken out of answers as they come, and everything else byte for byte."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.call_filter import CallFilter, names
from tests.model.harness import Stand, answer, read_request, standing
from tests.raw import Peer

OFFERED = frozenset({"good"})


def event(value: object, end: str = "\n\n") -> bytes:
    return f"data: {json.dumps(value)}{end}".encode()


def chunk(name: str | None, index: int, reason: str | None = None) -> dict:
    function = {"arguments": "x"} if name is None else {"name": name, "arguments": ""}
    calls = [{"index": index, "function": function}]
    return {"choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": reason}]}


TEXT = {"choices": [{"index": 0, "delta": {"content": 'tool_calls "x"'}, "finish_reason": None}]}
DONE = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
STREAM = [
    b": ping\r\n\r\n",
    event(TEXT),
    event(chunk("bad", 0), "\r\n\r\n"),
    event(chunk(None, 0)),
    event(chunk("good", 1)),
    event(chunk(None, 1)),
    event(DONE),
    b"data: [DONE]\n\n",
]
BARE = {"choices": [{"index": 0, "delta": {}, "finish_reason": None}]}
FILTERED = [
    *STREAM[:2],
    event(BARE, "\r\n\r\n"),
    event(BARE),
    event(chunk("good", 0)),
    event(chunk(None, 0)),
    *STREAM[6:],
]


@given(st.data())
def test_a_stream_cut_anywhere_gives_the_same_events(data) -> None:
    stream = b"".join(STREAM)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    calls = CallFilter(OFFERED, stream=True)
    out = b""
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        out += calls.feed(stream[start:end])
    out += calls.end()
    assert out.replace(b"\r\n", b"\n") == b"".join(FILTERED).replace(b"\r\n", b"\n")
    assert {change.rule for change in calls.changes} == {"unoffered_calls"}


def test_events_pass_as_soon_as_they_are_whole_and_untouched() -> None:
    calls = CallFilter(OFFERED, stream=True)
    for raw in (STREAM[0], STREAM[1], event(chunk("good", 0)), b"data: tool_calls {\n\n"):
        assert calls.feed(raw) == raw
    assert calls.feed(b"data: half") == b""
    assert calls.end() == b"data: half"


@pytest.mark.parametrize(
    "tools, found",
    [(b'[{"function":{"name":"good"}}]', OFFERED), (b"", frozenset()), (b"{", frozenset())],
)
def test_names_come_from_the_request(tools: bytes, found: frozenset[str]) -> None:
    assert names(tools, b"") == found


def test_an_answer_in_one_piece_waits_until_it_is_whole() -> None:
    bad = b'{"choices":[{"message":{"tool_calls":[{"function":{"name":"bad"}}],"content":null},'
    bad += b' "finish_reason": "tool_calls"}],"n":1.0}'
    calls = CallFilter(OFFERED, stream=False)
    assert calls.feed(bad[:20]) == b""
    calls.feed(bad[20:])
    expected = b'{"choices":[{"message":{"content":null}, "finish_reason": "stop"}],"n":1.0}'
    assert calls.end() == expected
    for same in (b"", b"{", b'{"choices":[]}', b"\xff"):
        calls = CallFilter(OFFERED, stream=False)
        calls.feed(same)
        assert calls.end() == same


REQUEST = b'{"messages":[],"tools":[{"type":"function","function":{"name":"good"}}]}'


@pytest.mark.anyio
@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_stream_through_the_proxy(framing: str) -> None:
    body = b"".join(STREAM)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    if framing == "length":
        response = head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    else:
        response = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (
            len(body),
            body,
        )
    async with standing(answer(response), drop_unoffered_calls=True) as stand:
        peer = await stand.dial()
        await peer.send(stand.request(REQUEST, b"/v1/chat/completions", b"Accept-Encoding: gzip"))
        found = await peer.until(b"\r\n0\r\n\r\n")
        assert found.count(b"Transfer-Encoding: chunked\r\n") == 1
        assert b"Content-Length" not in found
        assert b'"good"' in found
        assert b'"bad"' not in found
        assert b"Accept-Encoding" not in stand.requests[0]
        event = await stand.event()
        assert event["outcome"] == "complete"
        assert {change["rule"] for change in event["changes"]} == {"unoffered_calls"}
        await peer.close()


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_stream_s_last_event_is_filtered_without_its_blank_line_too(end: bytes) -> None:
    event = b'data: {"choices":[{"delta":{"content":"x"%b}}]}'
    calls = CallFilter(OFFERED, stream=True)
    bad = b',"tool_calls":[{"index":0,"id":"1","function":{"name":"bad"}}]'
    assert calls.feed(event % bad + end) == b""
    assert calls.end() == event % b"" + end
    assert CallFilter(OFFERED, stream=True).end() == b""


@pytest.mark.anyio
async def test_what_was_changed_in_a_stream_that_broke_off_is_told() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n"

    async def script(peer: Peer, stand: Stand) -> None:
        await read_request(peer)
        await peer.send(head + b"".join(STREAM))

    async with standing(script, drop_unoffered_calls=True) as stand:
        peer = await stand.dial()
        await peer.send(stand.request(REQUEST))
        await peer.rest()
        event = await stand.event()
        assert event["outcome"] == "cut"
        assert {change["rule"] for change in event["changes"]} == {"unoffered_calls"}
        await peer.close()


@pytest.mark.anyio
async def test_an_encoded_answer_is_passed_on_with_a_warning() -> None:
    response = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08"
    async with standing(answer(response), tap=True, drop_unoffered_calls=True) as stand:
        assert await stand.exchange(stand.request(REQUEST)) == response
        [warning] = [record for record in stand.taps if record[0] == "warning"]
        assert "content encoding" in warning[4]["message"]


@pytest.mark.anyio
async def test_an_answer_through_the_proxy_has_its_new_length() -> None:
    body = json.dumps(
        {
            "choices": [
                {
                    "message": {"tool_calls": [{"function": {"name": n}} for n in ("bad", "good")]},
                    "finish_reason": "tool_calls",
                }
            ]
        }
    ).encode()
    response = b"HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    refused = b"HTTP/1.1 400 No\r\nContent-Length: 2\r\n\r\n{}"
    async with standing(answer(response, refused), drop_unoffered_calls=True) as stand:
        found = await stand.exchange(stand.request(REQUEST))
        head, _, content = found.partition(b"\r\n\r\n")
        assert b"X: y\r\nContent-Length: %d" % len(content) in head
        calls = json.loads(content)["choices"][0]["message"]["tool_calls"]
        assert [call["function"]["name"] for call in calls] == ["good"]
        assert await stand.exchange(stand.request(REQUEST)) == refused
