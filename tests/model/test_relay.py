"""The relay on raw sockets: the same bytes at the same moment, and every way it can go wrong."""

import gzip
import json
import zlib

import anyio
import anyio.lowlevel
import brotli
import h11
import pytest
import zstandard

from tests.model.harness import OK, Stand, answer, read_request, standing
from tests.raw import Peer

pytestmark = pytest.mark.anyio

NULL = b'{"messages": [{"role":"assistant","content":null}], "x":1.0}'
MENDED = b'{"messages": [{"role":"assistant","content":""}], "x":1.0}'


async def test_the_upstream_gets_the_request_and_the_agent_the_response_byte_for_byte() -> None:
    response = b"HTTP/1.1 299 Quite Fine\r\nX-A: 1\r\nx-a:2\r\nSet-Cookie: b\r\n"
    response += b"Content-Length: 3\r\n\r\nabc"
    async with standing(answer(response)) as stand:
        lines = [
            b"X-ACP-Model-Request-ID: 7",
            b"x-stainless-os: L",
            b"Idempotency-Key: k",
            b"x-1:  y",
        ]
        sent = stand.request(b'{"a": 1}', b"/v1/chat/completions/?b=%20&c", *lines)
        assert await stand.exchange(sent) == response
        expected = sent.replace(stand.prefix, b"").replace(
            b"Host: 127.0.0.1:%d" % stand.port, b"Host: 127.0.0.1:%d" % stand.upstream_port
        )
        assert stand.requests == [expected.replace(b"x-1:  y", b"x-1: y")]


@pytest.mark.parametrize(
    "path, read",
    [
        (b"/chat/completions", True),
        (b"/any/prefix/chat/completions/", True),
        (b"/v1/chat/completions?api-version=1", True),
        (b"/v1/chat/completions//", False),
        (b"/v1/chat/completionsx", False),
        (b"/v1/CHAT/completions", False),
        (b"/v1/responses", False),
        (b"/v1/messages", False),
        (b"/v1beta/models/m:generateContent", False),
        (b"/v1/completions", False),
        (b"/v1/chat/completions/batch", False),
    ],
)
async def test_only_chat_completions_are_mended(path: bytes, read: bool) -> None:
    async with standing(answer(OK)) as stand:
        await stand.exchange(stand.request(NULL, path))
        assert stand.bodies == [MENDED if read else NULL]


@pytest.mark.parametrize("method", [b"PUT", b"PATCH", b"DELETE"])
async def test_only_posts_are_mended(method: bytes) -> None:
    async with standing(answer(OK)) as stand:
        await stand.exchange(stand.request(NULL, method=method))
        assert stand.bodies == [NULL]
        assert stand.requests[0].startswith(method + b" /v1/chat/completions HTTP/1.1\r\n")


async def test_content_type_plays_no_part_and_what_is_not_json_passes() -> None:
    async with standing(answer(OK)) as stand:
        sent = stand.request(NULL).replace(b"application/json", b"text/plain")
        await stand.exchange(sent)
        for body in (b"", b"\xff{", NULL + b"}", b"\xef\xbb\xbf" + NULL):
            await stand.exchange(stand.request(body))
        assert stand.bodies == [MENDED, b"", b"\xff{", NULL + b"}", b"\xef\xbb\xbf" + NULL]


async def test_a_chunked_request_stays_chunked_with_its_trailers() -> None:
    async with standing(answer(OK)) as stand:
        for path, body in ((b"/v1/chat/completions", MENDED), (b"/v1/messages", NULL)):
            head = b"POST %b%b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            chunks = b"".join(b"1\r\n%b\r\n" % NULL[i : i + 1] for i in range(len(NULL)))
            peer = await stand.dial()
            await peer.send(head % (stand.prefix, path) + chunks + b"0\r\nX-Sum: 9\r\n\r\n")
            await peer.until(b"{}")
            await peer.close()
            oracle = h11.Connection(h11.SERVER)
            oracle.receive_data(stand.requests[-1])
            request = oracle.next_event()
            assert isinstance(request, h11.Request)
            assert [v for n, v in request.headers if n == b"transfer-encoding"] == [b"chunked"]
            assert b"content-length" not in [name for name, _ in request.headers]
            found = b""
            while isinstance(event := oracle.next_event(), h11.Data):
                found += event.data
            assert found == body
            assert isinstance(event, h11.EndOfMessage)
            assert list(event.headers) == [(b"x-sum", b"9")]


@pytest.mark.parametrize(
    "name, encode",
    [
        (b"gzip", gzip.compress),
        (b"deflate", zlib.compress),
        (b"br", brotli.compress),
        (b"zstd", zstandard.compress),
    ],
)
@pytest.mark.parametrize("padding", [0, 300_000])
async def test_an_encoded_body_is_mended_plain_or_passed_on_as_it_is(name, encode, padding) -> None:
    null = NULL[:-1] + b',"p":"' + b"p" * padding + b'"}'
    async with standing(answer(OK)) as stand:
        whole = encode(b'{"messages":[], "p":"' + b"p" * padding + b'"}')
        await stand.exchange(
            stand.request(encode(null), b"/chat/completions", b"content-encoding: " + name)
        )
        await stand.exchange(
            stand.request(whole, b"/chat/completions", b"Content-Encoding: " + name)
        )
        assert stand.bodies == [null.replace(b":null", b':""'), whole]
        assert b"encoding" not in stand.requests[0].partition(b"\r\n\r\n")[0]
        assert b"Content-Encoding: " + name in stand.requests[1]


@pytest.mark.parametrize("encoding", [b"compress", b"gzip, br", b"gzip"])
async def test_an_encoding_that_cannot_be_read_is_passed_on_with_a_warning(encoding: bytes) -> None:
    async with standing(answer(OK), tap=True) as stand:
        await stand.exchange(
            stand.request(NULL, b"/v1/chat/completions", b"Content-Encoding: " + encoding)
        )
        assert stand.bodies == [NULL]
        warnings = [record for record in stand.taps if record[0] == "warning"]
        assert encoding.decode() in warnings[0][4]["message"]


async def test_methods_without_a_body_pass() -> None:
    no_content = b"HTTP/1.1 204 No Content\r\nX: y\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"
    async with standing(answer(OK, head, no_content)) as stand:
        peer = await stand.dial()
        for method, expected in ((b"GET", OK), (b"HEAD", head), (b"DELETE", no_content)):
            await peer.send(
                b"%b %b/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n" % (method, stand.prefix)
            )
            assert await peer.count(len(expected)) == expected
        host = b"Host: 127.0.0.1:%d" % stand.upstream_port
        assert stand.requests[0] == b"GET /v1/models HTTP/1.1\r\n" + host + b"\r\n\r\n"
        assert stand.connections == 1
        await peer.close()


async def test_expect_100_continue_is_answered_and_the_upstream_s_own_is_swallowed() -> None:
    async def script(peer: Peer, stand: Stand) -> None:
        stand.requests.append(await read_request(peer))
        await peer.send(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK
        )

    async with standing(script) as stand:
        peer = await stand.dial()
        data = stand.request(NULL, b"/v1/chat/completions", b"Expect: 100-continue")
        head, _, body = data.partition(b"\r\n\r\n")
        await peer.send(head + b"\r\n\r\n")
        assert await peer.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await peer.send(body)
        expected = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK
        assert await peer.count(len(expected)) == expected
        assert stand.bodies == [MENDED]
        await peer.close()


async def test_an_upstream_that_is_down_gives_502_in_the_dialect_s_shape() -> None:
    async with standing(answer(OK)) as stand:
        base = f"http://user:CANARY@127.0.0.1:{free_port()}/v1?key=CANARY"
        from protocol_schemas.model import ModelOptions

        url = stand.proxy.mount(base, options=ModelOptions())
        stand.prefix = b"/" + url.rpartition("/")[2].encode()
        for path, anthropic in (
            (b"/chat/completions", False),
            (b"/v1/messages", True),
            (b"/v1/messages/batches", True),
        ):
            found = await stand.exchange(stand.request(NULL, path, b"Authorization: Bearer CANARY"))
            head, _, body = found.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
            error = json.loads(body)
            assert (error.get("type") == "error") is anthropic
            assert error["error"]["type"] == "bridge_error"
            assert error["error"]["code"] == "model_upstream"
            assert "refused" in error["error"]["message"].lower()
            assert b"CANARY" not in found
        assert (await stand.event())["outcome"] == "failed"
        assert "CANARY" not in json.dumps(stand.events)


def free_port() -> int:
    import socket

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"garbage\r\n\r\n",
        b"",
    ],
)
async def test_a_broken_head_gives_502(head: bytes) -> None:
    async def script(peer: Peer, stand: Stand) -> None:
        stand.requests.append(await read_request(peer))
        await peer.send(head)

    async with standing(script) as stand:
        found = await stand.exchange(stand.request(NULL))
        assert found.startswith(b"HTTP/1.1 502 ")
        assert len(stand.requests) == 1


@pytest.mark.parametrize(
    ("body", "options"),
    [
        (b"Transfer-Encoding: chunked\r\n\r\nno length\r\n", {}),
        (b"Content-Length: 9\r\n\r\n{}", {"drop_unoffered_calls": True}),
        (b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}", {"drop_unoffered_calls": True}),
    ],
)
async def test_a_body_that_breaks_before_anything_was_passed_on_gives_502(
    body: bytes, options: dict[str, bool]
) -> None:
    async def script(peer: Peer, stand: Stand) -> None:
        stand.requests.append(await read_request(peer))
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + body)

    async with standing(script, **options) as stand:
        found = await stand.exchange(stand.request(NULL))
        assert found.startswith(b"HTTP/1.1 502 ")
        assert json.loads(found.partition(b"\r\n\r\n")[2])["error"]["code"] == "model_upstream"
        assert len(stand.requests) == 1


async def test_an_idle_upstream_gives_504_where_a_limit_was_set() -> None:
    async def script(peer: Peer, stand: Stand) -> None:
        await peer.rest()

    async with standing(script, idle_timeout=0.1) as stand:
        found = await stand.exchange(stand.request(NULL))
        assert found.startswith(b"HTTP/1.1 504 ")
        assert json.loads(found.partition(b"\r\n\r\n")[2])["error"]["code"] == "timeout"


async def test_an_early_answer_reaches_the_agent_while_it_still_sends() -> None:
    large = b"HTTP/1.1 413 Payload Too Large\r\nContent-Length: 3\r\n\r\nbig"

    async def script(peer: Peer, stand: Stand) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.send(large)
        await peer.rest()

    async with standing(script) as stand:
        peer = await stand.dial()
        size = 64 << 20
        await peer.send(stand.request(b"", b"/v1/files").replace(b": 0\r\n", b": %d\r\n" % size))

        async def pour() -> None:
            try:
                while True:
                    await peer.send(bytes(1 << 16))
            except anyio.BrokenResourceError:
                return

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pour)
            assert await peer.count(len(large)) == large
            tasks.cancel_scope.cancel()
        await peer.close()


async def test_an_unread_upload_streams_and_holds_its_sender_back() -> None:
    go = anyio.Event()

    async def script(peer: Peer, stand: Stand) -> None:
        assert (await peer.until(b"\r\n\r\n")).startswith(b"POST /v1/files HTTP/1.1\r\n")
        assert await peer.count(5) == b"first"
        go.set()
        await peer.count(32 << 20)
        await peer.send(OK)

    async with standing(script) as stand:
        peer = await stand.dial()
        head = stand.request(b"", b"/v1/files")
        await peer.send(head.replace(b": 0\r\n", b": %d\r\n" % ((32 << 20) + 5)) + b"first")
        await go.wait()
        await peer.send(bytes(32 << 20))
        assert await peer.count(len(OK)) == OK
        assert (await stand.event())["request_bytes"] == (32 << 20) + 5
        await peer.close()


@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/messages"])
async def test_a_body_that_breaks_its_framing_is_refused_and_ends_upstream(path: bytes) -> None:
    async def script(peer: Peer, stand: Stand) -> None:
        await peer.rest()

    async with standing(script) as stand:
        peer = await stand.dial()
        head = b"POST %b%b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        await peer.send(head % (stand.prefix, path) + b"2\r\nab\r\nxyz\r\n")
        found, _ = await peer.rest()
        assert found.startswith(b"HTTP/1.1 400 ")
        assert (await stand.event())["outcome"] == "refused"
        assert stand.gone == stand.connections


async def test_pipelined_requests_keep_their_order() -> None:
    async def script(peer: Peer, stand: Stand) -> None:
        while True:
            request = await read_request(peer)
            target = request.split(b" ")[1]
            await peer.send(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(target), target)
            )

    async with standing(script) as stand:
        peer = await stand.dial()
        await peer.send(
            b"".join(stand.request(NULL, b"/chat/completions?n=%d" % n) for n in range(20))
        )
        for number in range(20):
            await peer.until(b"/chat/completions?n=%d" % number)
        assert stand.connections == 1
        await peer.close()
