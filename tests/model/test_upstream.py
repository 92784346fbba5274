"""URLs taken apart and put together, and which headers go on."""

import base64

import pytest

from bridge.errors import UsageError
from bridge.io.httppool import Origin
from bridge.model.upstream import (
    is_end_to_end,
    join,
    parse,
    reframed,
    request_headers,
    response_headers,
)
from bridge.wire.http_head import parse_request, parse_response


@pytest.mark.parametrize(
    "url, rest, target",
    [
        ("http://h", b"", b"/"),
        ("http://h", b"/v1/x", b"/v1/x"),
        ("http://h/", b"/v1/x", b"/v1/x"),
        ("http://h/api", b"/v1/x", b"/api/v1/x"),
        ("http://h/api/", b"/v1/x", b"/api/v1/x"),
        ("http://h/api/", b"v1/x", b"/api/v1/x"),
        ("http://h/api", b"//x", b"/api//x"),
        ("http://h/api", b"", b"/api"),
        ("http://h/api", b"/", b"/api/"),
        ("http://h/api", b"/a/../b/%2e%2E/c", b"/api/a/../b/%2e%2E/c"),
        ("http://h/api", b"/x?q=1&q=2", b"/api/x?q=1&q=2"),
        ("http://h/api?k=v", b"/x", b"/api/x?k=v"),
        ("http://h/api?k=v", b"/x?q=/1?", b"/api/x?k=v&q=/1?"),
        ("http://h/api?k=v", b"?q=1", b"/api?k=v&q=1"),
        ("http://h/a b/é?q=ü", b"/x", b"/a%20b/%C3%A9/x?q=%C3%BC"),
        ("http://h/a%2Fb#frag", b"/x", b"/a%2Fb/x"),
    ],
)
def test_what_follows_the_prefix_is_joined_with_one_slash(
    url: str, rest: bytes, target: bytes
) -> None:
    assert join(parse(url), rest) == target


@pytest.mark.parametrize(
    "url, origin, host",
    [
        ("http://h", Origin("http", "h", 80), b"h"),
        ("https://H.example/x", Origin("https", "h.example", 443), b"H.example"),
        ("https://h:444", Origin("https", "h", 444), b"h:444"),
        ("http://h:80/", Origin("http", "h", 80), b"h:80"),
        ("http://u:p@[::1]:8080", Origin("http", "::1", 8080), b"[::1]:8080"),
        ("http://bücher.example", Origin("http", "bücher.example", 80), b"xn--bcher-kva.example"),
    ],
)
def test_the_origin_and_the_host_header(url: str, origin: Origin, host: bytes) -> None:
    found = parse(url)
    assert (found.origin, found.host) == (origin, host)


@pytest.mark.parametrize(
    "url",
    [
        *("", "h", "ftp://h", "http://", "http:///x", "http://h:x", "http://h:99999", "http://h:0"),
        *("http://[::1", "http://[::1]x", "http://ex ample", "http://h\0", "http://h%41/"),
        *("http://a..b", f"http://{'a' * 64}.example", f"http://{'é' * 64}"),
    ],
)
def test_what_is_no_http_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        parse(url)


def test_neither_errors_nor_what_is_shown_hold_the_credentials() -> None:
    for url in ("ftp://user:CANARY@h", "http://user:CANARY/x@h", "http://user:CANARY@h\u2100"):
        with pytest.raises(UsageError) as caught:
            parse(url)
        assert "CANARY" not in str(caught.value)
    assert parse("http://user:CANARY@h/x?key=CANARY").shown == "http://h/x"


def sent(*lines: bytes) -> dict[str, object]:
    head = parse_request(b"\r\n".join([b"POST / HTTP/1.1", b"Host: proxy", *lines, b"", b""]))
    return {"headers": head.headers, "fields": head.fields}


def test_headers_go_on_as_sent_but_for_host_and_what_is_hop_by_hop() -> None:
    lines = [
        *(b"X-ACP-Model-Request-ID: 1", b"idempotency-key: k", b"x-stainless-lang: js", b"X: 1"),
        *(b"Cookie: a", b"cookie: b", b"Content-Length: 5", b"X: 2", b"Expect: 100-continue"),
    ]
    hops = [
        *(b"Connection: keep-alive, X-Hop", b"X-Hop: 1", b"Keep-Alive: 5", b"TE: trailers"),
        *(b"Upgrade: h2c", b"Proxy-Authorization: x", b"Trailer: T", b"Proxy-Connection: close"),
    ]
    found = request_headers(parse("http://h:1"), **sent(*lines[:4], *hops, *lines[4:]))  # type: ignore[arg-type]
    assert found == [
        (b"Host", b"h:1"),
        *(tuple(line.split(b": ")) for line in lines),
    ]


def test_connection_cannot_take_the_framing_or_the_host_away() -> None:
    found = request_headers(
        parse("http://h"),
        **sent(b"Connection: content-length, host", b"Content-Length: 5"),  # type: ignore[arg-type]
    )
    assert found == [(b"Host", b"h"), (b"Content-Length", b"5")]


def test_a_chunked_framing_stays_and_an_upgrade_if_it_is_wanted() -> None:
    found = request_headers(parse("http://h"), **sent(b"Transfer-Encoding: chunked"))  # type: ignore[arg-type]
    assert found == [(b"Host", b"h"), (b"Transfer-Encoding", b"chunked")]
    lines = (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: x", b"TE: x")
    found = request_headers(parse("http://h"), **sent(*lines), upgrade=True)  # type: ignore[arg-type]
    assert [name for name, _ in found] == [b"Host", b"Connection", b"Upgrade", b"Sec-WebSocket-Key"]


def test_userinfo_becomes_basic_authorization_where_there_is_none() -> None:
    upstream = parse("http://us%40er:p%3Aw@h")
    expected = b"Basic " + base64.b64encode(b"us@er:p:w")
    assert (b"Authorization", expected) in request_headers(upstream, **sent(b"X: 1"))  # type: ignore[arg-type]
    kept = request_headers(upstream, **sent(b"authorization: Bearer x"))  # type: ignore[arg-type]
    assert [value for name, value in kept if name.lower() == b"authorization"] == [b"Bearer x"]


def test_a_response_s_headers() -> None:
    lines = [
        b"Set-Cookie: a",
        b"Set-Cookie: b",
        b"Content-Encoding: gzip",
        b"Transfer-Encoding: chunked",
    ]
    head = parse_response(b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"", b""]), "GET")
    pairs = [tuple(line.split(b": ")) for line in lines]
    assert is_end_to_end(head.fields)
    assert response_headers(head.headers, head.fields, framed=True) == pairs
    assert response_headers(head.headers, head.fields, framed=False) == pairs[:3]
    hops = [b"Connection: close, X-Hop", b"x-hop: 1", b"Keep-Alive: timeout=5"]
    head = parse_response(b"\r\n".join([b"HTTP/1.1 200 OK", *hops, *lines, b"", b""]), "GET")
    assert not is_end_to_end(head.fields)
    assert response_headers(head.headers, head.fields, framed=True) == pairs


def test_a_changed_body_is_framed_anew_in_the_old_place() -> None:
    headers = [
        (b"A", b"1"),
        (b"content-length", b"9"),
        (b"Content-Encoding", b"gzip"),
        (b"B", b"2"),
    ]
    assert reframed(headers, 12, plain=False) == [
        headers[0],
        (b"content-length", b"12"),
        *headers[2:],
    ]
    assert reframed(headers, 12, plain=True) == [headers[0], (b"content-length", b"12"), headers[3]]
