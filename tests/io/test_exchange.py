"""One exchange: framings of the response, Expect, trailers, HEAD, drained bodies, tunnels."""

import anyio
import h11
import pytest

from bridge.io.exchange import Answered, Exchange
from tests.raw import dial, serving

pytestmark = pytest.mark.anyio

HEAD = b"%b / HTTP/1.1\r\nHost: localhost\r\n"


async def test_a_stream_is_chunked_and_sent_as_it_comes() -> None:
    go = anyio.Event()

    async def handler(exchange: Exchange) -> None:
        await exchange.start(200, [(b"Content-Type", b"text/event-stream")], first=b"a")
        await exchange.send(b"")
        await go.wait()
        await exchange.send(b"bc")
        await exchange.finish([(b"X-Sum", b"3")])

    async with serving(handler) as server:
        peer = await dial(server.port)
        await peer.send(HEAD % b"GET" + b"\r\n")
        head = await peer.until(b"\r\n\r\n")
        assert head.count(b"Transfer-Encoding: chunked\r\n") == 1
        assert b"Content-Length" not in head
        assert await peer.count(6) == b"1\r\na\r\n"
        go.set()
        assert await peer.until(b"\r\n\r\n") == b"2\r\nbc\r\n0\r\nX-Sum: 3\r\n\r\n"
        await peer.close()


async def test_what_is_framed_already_is_passed_on_untouched() -> None:
    framed = b"3;ext=1\r\nabc\r\n0\r\nT: v\r\n\r\n"

    async def handler(exchange: Exchange) -> None:
        headers = [(b"transfer-encoding", b"chunked")]
        await exchange.start(201, headers, reason=b"Fine", first=framed[:5], framed=True)
        await exchange.send(framed[5:])
        await exchange.finish()

    async with serving(handler) as server:
        peer = await dial(server.port)
        for _ in range(2):
            await peer.send(HEAD % b"GET" + b"\r\n")
            expected = b"HTTP/1.1 201 Fine\r\ntransfer-encoding: chunked\r\n\r\n" + framed
            assert await peer.count(len(expected)) == expected
        await peer.close()


async def test_http_1_0_gets_its_stream_to_the_end_of_the_connection() -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.start(200, [])
        await exchange.send(b"ab")
        await exchange.finish()

    async with serving(handler) as server:
        peer = await dial(server.port)
        await peer.send(b"GET / HTTP/1.0\r\n\r\n")
        assert await peer.rest() == (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nab", True)


async def test_head_and_bodiless_statuses_have_no_body() -> None:
    async def handler(exchange: Exchange) -> None:
        if exchange.method == "HEAD":
            await exchange.respond(200, [], b"12345")
        else:
            await exchange.respond(204, [])

    async with serving(handler) as server:
        peer = await dial(server.port)
        await peer.send(HEAD % b"HEAD" + b"\r\n" + HEAD % b"DELETE" + b"\r\n")
        assert await peer.until(b"\r\n\r\n") == b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
        assert await peer.until(b"\r\n\r\n") == b"HTTP/1.1 204 No Content\r\n\r\n"
        await peer.close()


@pytest.mark.parametrize(
    "body, words",
    [(b"abcd", "more bytes"), (b"ab", "1 bytes less")],
)
async def test_an_announced_length_is_kept(body: bytes, words: str) -> None:
    caught: list[str] = []

    async def handler(exchange: Exchange) -> None:
        try:
            await exchange.start(200, [(b"Content-Length", b"3")])
            await exchange.send(body)
            await exchange.finish()
        except Answered as error:
            caught.append(str(error))

    async with serving(handler) as server:
        peer = await dial(server.port)
        await peer.send(HEAD % b"GET" + b"\r\n")
        found, _ = await peer.rest()
        assert len(found.partition(b"\r\n\r\n")[2]) < 3
        assert words in caught[0]


async def test_a_client_that_expects_100_gets_it_when_the_body_is_wanted() -> None:
    async def handler(exchange: Exchange) -> None:
        if exchange.header(b"x-want"):
            assert await exchange.read(10) == b"abc"
        await exchange.respond(200, [])

    expect = HEAD % b"POST" + b"Expect: 100-Continue\r\nContent-Length: 3\r\n"
    async with serving(handler) as server:
        peer = await dial(server.port)
        await peer.send(expect + b"X-Want: 1\r\n\r\n")
        assert await peer.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await peer.send(b"abc")
        assert (await peer.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK\r\n")
        await peer.send(expect + b"\r\n")
        found, _ = await peer.rest()
        assert found.startswith(b"HTTP/1.1 200 OK\r\n")


async def test_a_body_nobody_read_is_drained_if_short() -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.respond(200, [])

    async with serving(handler) as server:
        peer = await dial(server.port)
        for _ in range(2):
            await peer.send(HEAD % b"POST" + b"Content-Length: 100000\r\n\r\n" + b"x" * 100_000)
            await peer.until(b"\r\n\r\n")
        await peer.close()


async def test_a_body_is_iterated_with_its_trailers_at_the_end() -> None:
    seen: list[object] = []

    async def handler(exchange: Exchange) -> None:
        seen.append(b"".join([chunk async for chunk in exchange.body]))
        seen.append(exchange.trailers)
        await exchange.inform(103, [(b"Link", b"x")])
        await exchange.respond(200, [])

    async with serving(handler) as server:
        peer = await dial(server.port)
        await peer.send(HEAD % b"POST" + b"Transfer-Encoding: chunked\r\n\r\n")
        await peer.send(b"2\r\nab\r\n1\r\nc\r\n0\r\nX-T: 1\r\n\r\n")
        informed = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        assert await peer.count(len(informed)) == informed
        await peer.until(b"200 OK")
        assert seen == [b"abc", [(b"X-T", b"1")]]
        await peer.close()


async def test_an_upgraded_connection_is_a_raw_stream() -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.start(101, [(b"Upgrade", b"websocket"), (b"Connection", b"Upgrade")])
        tunnel = exchange.detach()
        while data := await tunnel.receive():
            await tunnel.send(data.upper())
        await tunnel.send(b"bye")

    async with serving(handler) as server:
        peer = await dial(server.port)
        await peer.send(HEAD % b"GET" + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\nearly ")
        head = await peer.until(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        assert b"close" not in head
        await peer.send(b"\0late\r\n\r\n")
        await peer.until(b"EARLY \0LATE\r\n\r\n")
        await peer.stream.send_eof()
        assert await peer.rest() == (b"bye", True)


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_h11_reads_what_is_written(framing: str) -> None:
    async def handler(exchange: Exchange) -> None:
        body = await exchange.read(1 << 20)
        length = [(b"Content-Length", b"%d" % len(body))] if framing == "length" else []
        await exchange.start(200, [(b"X-A", b"1"), (b"X-A", b"2"), *length])
        for start in range(0, len(body), 1000):
            await exchange.send(body[start : start + 1000])
        await exchange.finish()

    async with serving(handler) as server:
        peer = await dial(server.port)
        client = h11.Connection(h11.CLIENT)
        for body in (b"", b"x" * 2500, b"\r\n\r\n0\r\n\r\n"):
            headers = [("Host", "localhost"), ("Transfer-Encoding", "chunked")]
            await peer.send(client.send(h11.Request(method="POST", target="/", headers=headers)))
            await peer.send(client.send(h11.Data(data=body)) or b"")
            await peer.send(client.send(h11.EndOfMessage()))
            found = b""
            while True:
                event = client.next_event()
                if event is h11.NEED_DATA:
                    client.receive_data(await peer.stream.receive())
                elif isinstance(event, h11.Response):
                    assert [value for name, value in event.headers if name == b"x-a"] == [
                        b"1",
                        b"2",
                    ]
                elif isinstance(event, h11.Data):
                    found += event.data
                else:
                    assert isinstance(event, h11.EndOfMessage)
                    break
            assert found == body
            client.start_next_cycle()
        await peer.close()
