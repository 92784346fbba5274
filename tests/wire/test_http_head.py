"""Heads: what is refused, what is kept as sent, and agreement with h11 where h11 is as strict."""

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire import http_head
from bridge.wire.http_head import BadHead, parse_request, parse_response


def request(*lines: bytes, first: bytes = b"POST /x HTTP/1.1") -> http_head.Request:
    return parse_request(b"\r\n".join([first, *lines, b"", b""]))


def test_a_request_is_kept_as_sent() -> None:
    found = request(
        *(b"Host: h:1", b"X-Two: 1", b"x-two:2 ", b"Empty:", b"Content-Length: 12"),
        first=b"POST /a/../b?q=%20#x HTTP/1.1",
    )
    assert found == http_head.Request(
        "POST",
        b"/a/../b?q=%20#x",
        1,
        [
            *((b"Host", b"h:1"), (b"X-Two", b"1"), (b"x-two", b"2"), (b"Empty", b"")),
            (b"Content-Length", b"12"),
        ],
        "length",
        12,
        True,
        {b"host": b"h:1", b"x-two": b"1,2", b"empty": b"", b"content-length": b"12"},
    )
    head = http_head.request_bytes(found.method, found.target, found.headers)
    assert parse_request(head) == found


@pytest.mark.parametrize(
    "lines, framing, length",
    [
        ([], "none", 0),
        ([b"Content-Length: 0"], "length", 0),
        ([b"content-length: 007"], "length", 7),
        ([b"Transfer-Encoding: Chunked"], "chunked", 0),
    ],
)
def test_a_request_has_one_framing(lines: list[bytes], framing: str, length: int) -> None:
    found = request(b"Host: a", *lines)
    assert (found.framing, found.length) == (framing, length)


REFUSED = [
    (b"Content-Length: 3\r\nTransfer-Encoding: chunked", "both"),
    (b"Content-Length: 3\r\nContent-Length: 3", "more than one Content-Length"),
    (b"Content-Length: 3, 3", "more than one Content-Length"),
    (b"Content-Length: +3", "not a number"),
    (b"Content-Length: -1", "not a number"),
    (b"Content-Length: 0x3", "not a number"),
    (b"Content-Length: 1_0", "not a number"),
    (b"Content-Length:", "not a number"),
    (b"Content-Length: " + b"9" * 19, "not a number"),
    (b"Transfer-Encoding: gzip, chunked", "other than chunked"),
    (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "other than chunked"),
    (b"Transfer-Encoding: identity", "other than chunked"),
    (b"Transfer-Encoding: \x0bchunked", "control byte"),
    (b"X: a\n b", "LF without CR"),
    (b"X: a\nY: b", "LF without CR"),
    (b"X: a\rY: b", "CR without LF"),
    (b"X: a\r\n b", "folded"),
    (b"X: a\r\n\tb", "folded"),
    (b"X: \0", "control byte"),
    (b"X: \x7f", "control byte"),
    (b"X : a", "header line 2"),
    (b" X: a", "folded"),
    (b": a", "header line 2"),
    (b"no colon", "header line 2"),
    (b"H\xc3\xa9: a", "header line 2"),
    (b"Host: b", "more than one Host"),
]


@pytest.mark.parametrize("line, words", REFUSED)
def test_what_could_be_read_in_two_ways_is_refused(line: bytes, words: str) -> None:
    with pytest.raises(BadHead, match=words):
        request(b"Host: a", line)


@pytest.mark.parametrize(
    "first",
    [
        *(
            b"GET /",
            b"GET  / HTTP/1.1",
            b"GET / HTTP/1.1 ",
            b"GET / HTTP/2.0",
            b"GET /a b HTTP/1.1",
        ),
        *(b"get\t/ HTTP/1.1", b"GET / http/1.1", b"", b"G@T / HTTP/1.1", b"GET  HTTP/1.1"),
    ],
)
def test_a_malformed_request_line_is_refused(first: bytes) -> None:
    with pytest.raises(BadHead, match="request line"):
        request(b"Host: a", first=first)


def test_a_request_needs_one_host_unless_it_is_of_http_1_0() -> None:
    with pytest.raises(BadHead, match="no Host"):
        request()
    assert not request(first=b"GET / HTTP/1.0").keep_alive
    with pytest.raises(BadHead, match=r"in HTTP/1\.0"):
        request(b"Transfer-Encoding: chunked", first=b"POST / HTTP/1.0")


def test_the_size_of_a_head_is_bounded() -> None:
    with pytest.raises(BadHead) as caught:
        request(b"Host: a", b"X: " + b"x" * http_head.HEAD_LIMIT)
    assert caught.value.status == 431


def test_the_members_of_a_list_are_found_whatever_its_spacing() -> None:
    assert http_head.members(b" A, b ,,C") == [b"a", b"b", b"c"]
    assert http_head.members(None) == []
    assert http_head.find([(b"X", b"1"), (b"x", b"2")], b"x") == b"1"


@pytest.mark.parametrize("value", [b"close", b"Close", b"upgrade, close", b"a,close"])
def test_connection_close_ends_the_connection(value: bytes) -> None:
    assert not request(b"Host: a", b"Connection: " + value).keep_alive
    assert request(b"Host: a", b"Connection: keep-alive").keep_alive


@pytest.mark.parametrize(
    "data, words",
    [
        (b"\x16\x03\x01\x02\x00\x01", "control byte"),
        (b"GET / HTTP/1.1\nHost: a\n\n", "LF without CR"),
        (b"GET / HTTP/1.1\rHost", "CR without LF"),
        (b"G" * (http_head.HEAD_LIMIT + 1), "more than"),
    ],
)
def test_a_part_that_can_become_no_head_is_refused_at_once(data: bytes, words: str) -> None:
    with pytest.raises(BadHead, match=words):
        http_head.find_end(data)


@pytest.mark.parametrize("data", [b"HTTP/2 200", b"http/1.1", b"S", b"\r\nHTTP/1.1 200 OK"])
def test_what_begins_as_no_response_is_refused_at_once(data: bytes) -> None:
    for size in range(8):
        http_head.check_response(b"HTTP/1.1"[:size])
    with pytest.raises(BadHead, match="malformed status line"):
        http_head.check_response(data)


def test_a_head_s_end_is_found_however_it_comes() -> None:
    head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    for size in range(len(head)):
        assert http_head.find_end(head[:size], max(0, size - 1)) == 0
    assert http_head.find_end(head, len(head) - 1) == len(head)
    assert http_head.find_end(head + b"body", 0) == len(head)


def test_a_refusal_takes_no_longer_for_all_the_white_space_there_is() -> None:
    with pytest.raises(BadHead, match="control byte"):
        request(b"Host: a", b"X:" + b" \t" * 120_000 + b"\1")
    with pytest.raises(BadHead, match="header line 2"):
        request(b"Host: a", b"X" * 250_000)


@pytest.mark.parametrize(
    "head, method, framing, keep",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", "length", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", "none", True),
        (b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", "chunked", True),
        (b"HTTP/1.1 200 \r\n\r\n", "GET", "close", False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "GET", "none", True),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "GET", "none", True),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "POST", "none", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", "length", False),
        (b"HTTP/1.1 529 Overloaded\r\nConnection: close\r\n\r\n", "GET", "close", False),
    ],
)
def test_how_a_response_ends(head: bytes, method: str, framing: str, keep: bool) -> None:
    found = parse_response(head, method)
    assert (found.framing, found.keep_alive) == (framing, keep)
    assert (
        parse_response(
            http_head.response_bytes(found.status, found.reason, found.headers), method
        ).headers
        == found.headers
    )


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: \0\r\n\r\n",
    ],
)
def test_a_broken_response_head_is_refused(head: bytes) -> None:
    with pytest.raises(BadHead):
        parse_response(head, "GET")


NAMES = st.sampled_from([b"X", b"Accept", b"content-length", b"Transfer-Encoding", b"Host", b"x y"])
VALUES = st.one_of(
    st.sampled_from([b"chunked", b"5", b"5, 5", b"", b" a\tb ", b"\xe9", b"keep-alive", b"\0"]),
    st.binary(max_size=6),
)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=5))
def test_whatever_h11_refuses_is_refused_and_what_both_take_is_the_same(
    fields: list[tuple[bytes, bytes]],
) -> None:
    head = b"POST /x HTTP/1.1\r\n" + b"".join(b"%b: %b\r\n" % pair for pair in fields) + b"\r\n"
    if head.index(b"\r\n\r\n") + 4 != len(head):
        return
    oracle = h11.Connection(h11.SERVER)
    oracle.receive_data(head)
    try:
        event = oracle.next_event()
    except h11.RemoteProtocolError:
        event = None
    try:
        ours = parse_request(head)
    except BadHead:
        return
    assert isinstance(event, h11.Request), head
    assert [(name.lower(), value) for name, value in ours.headers] == list(event.headers)
