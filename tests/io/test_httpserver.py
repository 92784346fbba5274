"""The server as raw clients see it: order, keep-alive, refusals, and clients that leave."""

import anyio
import pytest

from bridge.errors import UsageError
from bridge.io.exchange import Exchange
from bridge.io.httpserver import listen
from tests.raw import dial, serving

pytestmark = pytest.mark.anyio

GET = b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /%b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b"


async def echo(exchange: Exchange) -> None:
    body = await exchange.read(1 << 20)
    await exchange.respond(200, [(b"X-Target", exchange.target)], body)


def answer(target: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nX-Target: %b\r\nContent-Length: %d\r\n\r\n%b" % (
        *(target, len(body)),
        body,
    )


async def test_one_connection_serves_many_requests_in_order() -> None:
    async with serving(echo) as server:
        peer = await dial(server.port)
        for number in range(3):
            await peer.send(POST % (b"%d" % number, 3, b"abc"))
            expected = answer(b"/%d" % number, b"abc")
            assert await peer.count(len(expected)) == expected
        await peer.close()


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with serving(echo) as server:
        peer = await dial(server.port)
        await peer.send(b"".join(POST % (b"%d" % n, n % 7, b"x" * (n % 7)) for n in range(50)))
        expected = b"".join(answer(b"/%d" % n, b"x" * (n % 7)) for n in range(50))
        assert await peer.count(len(expected)) == expected
        await peer.close()


async def test_requests_may_come_byte_by_byte_and_behind_empty_lines() -> None:
    async with serving(echo) as server:
        peer = await dial(server.port)
        chunked = b"POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        await peer.send(b"\r\n" * 400_000)
        stream = b"\r\n\r\n" + POST % (b"a", 2, b"hi") + chunked + b"3\r\nabc\r\n0\r\nT: v\r\n\r\n"
        for byte in stream + GET % b"c":
            await peer.send(bytes([byte]))
        expected = answer(b"/a", b"hi") + answer(b"/b", b"abc") + answer(b"/c", b"")
        assert await peer.count(len(expected)) == expected
        await peer.close()


async def test_connection_close_and_http_1_0_end_the_connection() -> None:
    async with serving(echo) as server:
        for request in (
            b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            b"GET /x HTTP/1.0\r\n\r\n",
        ):
            peer = await dial(server.port)
            await peer.send(request)
            found, clean = await peer.rest()
            assert b"Connection: close\r\n" in found
            assert found.startswith(b"HTTP/1.1 200 OK\r\n")
            assert clean


REFUSED = [
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\nabc",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\nx",
    b"GET / HTTP/1.1\r\nHost: a\r\nX: a\n b: c\r\n\r\n",
    b"GET / HTTP/1.1\nHost: a\n\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\x00\xa5",
]


@pytest.mark.parametrize("request_", REFUSED)
async def test_a_malformed_head_gets_400_and_the_connection_is_closed(request_: bytes) -> None:
    calls: list[bytes] = []

    async def handler(exchange: Exchange) -> None:
        calls.append(exchange.target)

    async with serving(handler) as server:
        peer = await dial(server.port)
        await peer.send(request_)
        found, _ = await peer.rest()
        assert found.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert b'"type":"bridge_error","code":"bad_request"' in found
        assert not calls


async def test_a_refused_head_does_not_let_a_second_request_through() -> None:
    async with serving(echo) as server:
        peer = await dial(server.port)
        await peer.send(GET % b"good" + REFUSED[0] + GET % b"smuggled")
        found, _ = await peer.rest()
        assert found.count(b"HTTP/1.1 ") == 2
        assert b"smuggled" not in found


async def test_broken_chunked_framing_gets_400() -> None:
    async with serving(echo) as server:
        peer = await dial(server.port)
        await peer.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n")
        found, _ = await peer.rest()
        assert found.startswith(b"HTTP/1.1 400 ")


async def test_a_head_that_is_too_large_gets_431() -> None:
    async with serving(echo) as server:
        peer = await dial(server.port)
        await peer.send(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 300_000)
        found, _ = await peer.rest()
        assert found.startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("leave", ["close", "half", "reset"])
@pytest.mark.parametrize("phase", ["body", "waiting", "streaming"])
async def test_a_client_that_leaves_cancels_its_handler(leave: str, phase: str) -> None:
    started, cancelled = anyio.Event(), anyio.Event()

    async def handler(exchange: Exchange) -> None:
        try:
            if phase == "streaming":
                await exchange.start(200, [])
                await exchange.send(b"x")
            started.set()
            if phase == "body":
                await exchange.read(100)
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async with serving(handler) as server:
        peer = await dial(server.port)
        await peer.send(POST % (b"", 3, b"ab" if phase == "body" else b"abc"))
        await started.wait()
        await peer.leave(leave)
        await cancelled.wait()
        await peer.close()


async def test_a_client_that_leaves_behind_unread_megabytes_cancels_its_handler() -> None:
    started, cancelled = anyio.Event(), anyio.Event()

    async def handler(exchange: Exchange) -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async with serving(handler) as server:
        peer = await dial(server.port)
        size = 32 << 20
        await peer.send(POST % (b"", size, b""))
        await started.wait()
        sent = 0
        with anyio.move_on_after(0.2):
            while sent < size:
                await peer.send(b"x" * 65536)
                sent += 65536
        assert sent < size, "the server should not have taken it all"
        await peer.close()
        await cancelled.wait()


async def test_a_slow_handler_holds_its_client_back() -> None:
    go = anyio.Event()
    size = 32 << 20
    total = 0

    async def handler(exchange: Exchange) -> None:
        nonlocal total
        await go.wait()
        async for chunk in exchange.body:
            total += len(chunk)
        await exchange.respond(200, [])

    async with serving(handler) as server:
        peer = await dial(server.port)
        sent = 0

        async def pour() -> None:
            nonlocal sent
            await peer.send(POST % (b"", size, b""))
            while sent < size:
                await peer.send(b"x" * 65536)
                sent += 65536

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pour)
            before = -1
            while before != sent:
                before = sent
                await anyio.sleep(0.1)
            assert sent < size
            go.set()
        await peer.until(b"\r\n\r\n")
        assert total == size
        await peer.close()


async def test_a_failing_handler_gets_500_and_the_server_lives() -> None:
    async def handler(exchange: Exchange) -> None:
        if exchange.path == "/bad":
            raise RuntimeError("CANARY")
        await echo(exchange)

    async with serving(handler) as server:
        peer = await dial(server.port)
        await peer.send(GET % b"bad")
        found, _ = await peer.rest()
        assert found.startswith(b"HTTP/1.1 500 ")
        assert b"CANARY" not in found
        peer = await dial(server.port)
        await peer.send(GET % b"good")
        await peer.until(b"X-Target: /good\r\n")
        await peer.close()


async def test_a_handler_that_answers_nothing_is_answered_for() -> None:
    async def handler(exchange: Exchange) -> None:
        pass

    async with serving(handler) as server:
        peer = await dial(server.port)
        await peer.send(GET % b"")
        found, _ = await peer.rest()
        assert found.startswith(b"HTTP/1.1 500 ")


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
async def test_an_unfinished_answer_never_ends_cleanly(version: bytes) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.start(200, [])
        await exchange.send(b"part")
        raise RuntimeError

    async with serving(handler) as server:
        peer = await dial(server.port)
        await peer.send(b"GET / HTTP/%b\r\nHost: a\r\n\r\n" % version)
        found, clean = await peer.rest()
        assert b"0\r\n\r\n" not in found
        assert not clean or b"Transfer-Encoding: chunked" in found


async def test_cancelling_the_server_breaks_open_streams() -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.start(200, [])
        await exchange.send(b"part")
        await anyio.sleep_forever()

    async with serving(handler) as server:
        peers = [await dial(server.port), await dial(server.port)]
        for peer, version in zip(peers, (b"1.1", b"1.0"), strict=True):
            await peer.send(b"GET / HTTP/%b\r\nHost: a\r\n\r\n" % version)
            await peer.until(b"part")
    found, _ = await peers[0].rest()
    assert b"0\r\n" not in found
    _, clean = await peers[1].rest()
    assert not clean


async def test_an_early_answer_to_a_large_upload_can_be_read() -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.read(10)

    async with serving(handler) as server:
        peer = await dial(server.port)
        await peer.send(POST % (b"", 8 << 20, b"x" * (4 << 20)))
        found, _ = await peer.rest()
        assert found.startswith(b"HTTP/1.1 413 ")
        assert b"over the limit of 10" in found


@pytest.mark.parametrize("rest", [b"zz\r\n", b""])
async def test_a_client_that_leaves_or_lies_while_its_body_is_dropped_harms_nobody(
    rest: bytes,
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.respond(200, [])

    async with serving(handler) as server:
        peer = await dial(server.port)
        await peer.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        await peer.until(b"\r\n\r\n")
        await peer.send(rest)
        await peer.close()
        peer = await dial(server.port)
        await peer.send(GET % b"x")
        await peer.until(b"200 OK")
        await peer.close()


async def test_addresses_off_the_loopback_need_permission() -> None:
    with pytest.raises(UsageError, match="--allow-remote"):
        async with listen("0.0.0.0"):
            pass
    async with listen("0.0.0.0", allow_remote=True) as server:
        assert server.port
        with pytest.raises(UsageError, match="cannot listen"):
            async with listen("127.0.0.1", server.port):
                pass
    with pytest.raises(UsageError, match="cannot listen"):
        async with listen("no-such-host.invalid"):
            pass
