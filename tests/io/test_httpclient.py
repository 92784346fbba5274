"""One call: sent once, answered early or late, whole or cut."""

from collections.abc import AsyncIterator

import anyio
import pytest

from bridge.io.httpclient import Call
from bridge.io.httppool import Cut, Origin, Pool, UpstreamError, UpstreamTimeout
from bridge.wire import http_head
from tests.raw import Peer, upstream

pytestmark = pytest.mark.anyio

HOST = [(b"Host", b"a")]


def pool_at(port: int) -> Pool:
    return Pool(Origin("http", "127.0.0.1", port))


async def body_of(call: Call) -> bytes:
    parts: list[bytes] = []
    while (piece := await call.receive()) is not None:
        parts.append(piece.data)
    return b"".join(parts)


async def get(port: int, headed: anyio.Event | None = None) -> bytes:
    async with Call(pool_at(port), "GET", b"/", HOST) as call:
        await call.head()
        if headed is not None:
            headed.set()
        return await body_of(call)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcdef",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x\r\nabcd\r\n2\r\nef\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nabcdef",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcdef",
    ],
)
@pytest.mark.parametrize("bytewise", [False, True])
async def test_a_response_is_read_to_its_end(answer: bytes, bytewise: bool) -> None:
    async def script(peer: Peer) -> None:
        assert (
            await peer.until(b"xyz")
            == b"POST /t HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz"
        )
        for start in range(0, len(answer), 1 if bytewise else len(answer)):
            await peer.send(answer[start : start + (1 if bytewise else len(answer))])

    async with upstream(script) as port:
        headers = [*HOST, (b"Content-Length", b"3")]
        async with Call(pool_at(port), "POST", b"/t", headers, [b"x", memoryview(b"yz")]) as call:
            head = await call.head()
            assert (head.status, head.reason) == (200, b"OK")
            assert await body_of(call) == b"abcdef"


async def test_what_came_with_the_head_is_ready_at_once() -> None:
    async def script(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        await peer.until(b"never")

    async with upstream(script) as port, Call(pool_at(port), "GET", b"/", HOST) as call:
        await call.head()
        piece = call.ready()
        assert piece is not None
        assert piece.data == b"ab"
        assert call.ready() is None


async def test_interim_responses_are_handed_on() -> None:
    seen: list[int] = []

    async def interim(response: http_head.Response) -> None:
        seen.append(response.status)

    async def script(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
        await peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with upstream(script) as port:
        async with Call(pool_at(port), "GET", b"/", HOST, interim=interim) as call:
            assert (await call.head()).status == 204
            assert await call.receive() is None
        assert seen == [103]


CUTS = [
    (b"", UpstreamError, "without an answer"),
    (b"HTTP/1.1 200 OK\r\nContent-", UpstreamError, "without an answer"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab", Cut, "2 bytes before its end"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", Cut, "last chunk"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", Cut, "chunked framing"),
    (
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        UpstreamError,
        "broken head: a line that ends in LF",
    ),
    (b"\x15\x03\x03\x00\x02\x02F", UpstreamError, "broken head: a control byte"),
]


@pytest.mark.parametrize("answer, kind, words", CUTS)
async def test_an_answer_that_is_none_is_an_error(answer: bytes, kind: type, words: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.send(answer)

    async with upstream(script) as port:
        with pytest.raises(kind, match=words):
            await get(port)


@pytest.mark.parametrize("banner", [b"SSH-2.0-OpenSSH\r\n", b"-ERR unknown command\r\n", b"220 "])
async def test_a_server_of_another_protocol_is_not_waited_for(banner: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(banner)
        await peer.rest()

    async with upstream(script) as port:
        with pytest.raises(UpstreamError, match="broken head: malformed status line"):
            await get(port)


@pytest.mark.parametrize("framing", [b"Content-Length: 4", b"Transfer-Encoding: chunked", b"X: y"])
async def test_a_reset_is_never_an_end(framing: bytes) -> None:
    read = anyio.Event()

    async def script(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % framing)
        await read.wait()
        await peer.reset()

    async with upstream(script) as port:
        with pytest.raises(Cut, match="broke the connection"):
            await get(port, read)


async def test_a_post_is_sent_once_whatever_becomes_of_it() -> None:
    requests = 0

    async def script(peer: Peer) -> None:
        nonlocal requests
        while await peer.until(b"\r\n\r\n"):
            requests += 1
            if requests == 2:
                return
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with upstream(script) as port:
        pool = pool_at(port)
        headers = [*HOST, (b"Content-Length", b"0")]
        async with Call(pool, "POST", b"/", headers) as call:
            await call.head()
        with pytest.raises(UpstreamError, match="without an answer"):
            async with Call(pool, "POST", b"/", headers) as call:
                await call.head()
        assert requests == 2
        pool.close()


async def test_an_early_answer_is_read_while_the_upstream_reads_no_more() -> None:
    async def script(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
        await anyio.sleep_forever()

    async with upstream(script) as port:
        size = 64 << 20
        headers = [*HOST, (b"Content-Length", b"%d" % size)]
        async with Call(pool_at(port), "POST", b"/", headers, [bytes(size)]) as call:
            assert (await call.head()).status == 413
            assert await body_of(call) == b"big"


async def test_a_streamed_body_is_sent_as_it_comes() -> None:
    seen = anyio.Event()

    async def body() -> AsyncIterator[list[bytes]]:
        yield [b"1\r\n", b"a", b"\r\n"]
        await seen.wait()
        yield [b"0\r\n\r\n"]

    async def script(peer: Peer) -> None:
        await peer.until(b"1\r\na\r\n")
        seen.set()
        await peer.until(b"0\r\n\r\n")
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await peer.until(b"never")

    async with upstream(script) as port:
        headers = [*HOST, (b"Transfer-Encoding", b"chunked")]
        async with Call(pool_at(port), "POST", b"/", headers, stream=body()) as call:
            assert (await call.head()).status == 200


async def test_what_breaks_in_the_body_is_raised_where_the_call_is_left() -> None:
    async def body() -> AsyncIterator[list[bytes]]:
        yield [b"1\r\na\r\n"]
        raise LookupError("the body")

    async def script(peer: Peer) -> None:
        await peer.rest()

    async with upstream(script) as port:
        with pytest.raises(LookupError, match="the body"):
            async with Call(pool_at(port), "POST", b"/", HOST, stream=body()) as call:
                await call.head()


async def test_an_error_while_sending_goes_on_comes_out_as_it_is() -> None:
    async def script(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await anyio.sleep_forever()

    async with upstream(script) as port:
        with pytest.raises(LookupError):
            async with Call(pool_at(port), "POST", b"/", HOST, [bytes(64 << 20)]):
                raise LookupError


async def test_a_call_that_is_cancelled_closes_its_connection() -> None:
    started, ended = anyio.Event(), anyio.Event()

    async def script(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        started.set()
        await peer.rest()
        ended.set()

    async with upstream(script) as port:

        async def wait() -> None:
            async with Call(pool_at(port), "GET", b"/", HOST) as call:
                await call.head()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await started.wait()
            tasks.cancel_scope.cancel()
        await ended.wait()


async def test_an_idle_upstream_is_given_up_only_if_that_was_asked_for() -> None:
    async def script(peer: Peer) -> None:
        await peer.rest()

    async with upstream(script) as port:
        with pytest.raises(UpstreamTimeout, match=r"nothing from http://127.0.0.1:\d+ for 0.05 s"):
            async with Call(pool_at(port), "GET", b"/", HOST, idle_timeout=0.05) as call:
                await call.head()


@pytest.mark.parametrize("answers", [True, False])
async def test_the_upstream_is_not_blamed_for_a_body_that_comes_slowly(answers: bool) -> None:
    async def script(peer: Peer) -> None:
        await peer.until(b"\r\n\r\nab")
        if answers:
            await peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")
        await peer.rest()

    async def slowly() -> AsyncIterator[list[bytes]]:
        for piece in (b"a", b"b"):
            # Longer than the upstream may be silent.
            await anyio.sleep(0.15)
            yield [piece]

    headers = [*HOST, (b"Content-Length", b"2")]
    async with upstream(script) as port:
        call = Call(pool_at(port), "POST", b"/", headers, stream=slowly(), idle_timeout=0.05)
        if answers:
            async with call:
                assert (await call.head()).status == 204
        else:
            with pytest.raises(UpstreamTimeout):
                async with call:
                    await call.head()


async def test_after_a_101_the_connection_is_raw() -> None:
    async def script(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nearly")
        await peer.until(b"\0ping")
        await peer.send(b"pong")

    async with upstream(script) as port, Call(pool_at(port), "GET", b"/", HOST) as call:
        assert (await call.head()).status == 101
        assert await call.receive_raw() == b"early"
        await call.send_raw(b"\0ping")
        assert await call.receive_raw() == b"pong"
        assert await call.receive_raw() == b""
