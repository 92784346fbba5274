"""Responses through the proxy: every framing to every agent, and tunnels."""

import itertools

import anyio
import h11
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.model.harness import Stand, answer, read_request, standing
from tests.raw import Peer

pytestmark = pytest.mark.anyio

NULL = b'{"messages": [{"role":"assistant","content":null}], "x":1.0}'


async def test_http_1_0_agents_get_whole_streams() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
    async with standing(answer(chunked)) as stand:
        peer = await stand.dial()
        await peer.send(b"GET %b/x HTTP/1.0\r\n\r\n" % stand.prefix)
        assert await peer.rest() == (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc", True)


async def test_an_upstream_that_ends_by_closing_gives_a_stream_that_ends() -> None:
    async def script(peer: Peer, stand: Stand) -> None:
        await read_request(peer)
        await peer.send(b"HTTP/1.0 200 OK\r\nKeep-Alive: x\r\n\r\nabc")

    async with standing(script) as stand:
        peer = await stand.dial()
        await peer.send(stand.request(NULL))
        assert await peer.until(b"0\r\n\r\n") == (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        )
        await peer.close()


async def test_a_websocket_is_tunnelled_untouched() -> None:
    async def script(peer: Peer, stand: Stand) -> None:
        stand.requests.append(await peer.until(b"\r\n\r\n"))
        await peer.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n")
        await peer.send(b"Connection: Upgrade\r\n\r\nfirst")
        while data := await peer.stream.receive():
            await peer.send(data[::-1])

    async with standing(script) as stand:
        peer = await stand.dial()
        lines = b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n"
        await peer.send(
            b"GET %b/v1/realtime HTTP/1.1\r\nHost: localhost\r\n%b\r\n" % (stand.prefix, lines)
        )
        head = await peer.until(b"\r\n\r\n")
        assert head == (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
        )
        assert lines in stand.requests[0]
        assert await peer.count(5) == b"first"
        await peer.send(b"\0\x01abc")
        assert await peer.count(5) == b"cba\x01\0"
        await peer.close()
        await stand.departed(1)


CHUNKS = st.lists(st.binary(min_size=1, max_size=30), max_size=6)


@settings(suppress_health_check=list(HealthCheck), max_examples=25, deadline=None)
@given(chunks=CHUNKS, framing=st.sampled_from(["length", "chunked", "close"]), cuts=st.data())
def test_h11_reads_the_same_response_through_the_proxy(
    anyio_backend, chunks, framing, cuts
) -> None:
    body = b"".join(chunks)
    if framing == "length":
        wire = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    elif framing == "chunked":
        framed = b"".join(b"%x;e\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
        wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%b0\r\nT: v\r\n\r\n" % framed
    else:
        wire = b"HTTP/1.1 200 OK\r\n\r\n" + body
    edges = sorted({0, len(wire), *cuts.draw(st.lists(st.integers(0, len(wire)), max_size=4))})

    async def script(peer: Peer, stand: Stand) -> None:
        await read_request(peer)
        for start, end in itertools.pairwise(edges):
            await peer.send(wire[start:end])
            await anyio.lowlevel.checkpoint()

    async def main() -> bytes:
        async with standing(script) as stand:
            peer = await stand.dial()
            client = h11.Connection(h11.CLIENT)
            request = h11.Request(
                method="GET", target=stand.prefix + b"/x", headers=[("Host", "localhost")]
            )
            await peer.send(client.send(request))
            client.send(h11.EndOfMessage())
            found = b""
            while True:
                event = client.next_event()
                if event is h11.NEED_DATA:
                    client.receive_data(await peer.stream.receive())
                elif isinstance(event, h11.Data):
                    found += event.data
                elif isinstance(event, h11.EndOfMessage):
                    return found

    backend, options = anyio_backend
    assert anyio.run(main, backend=backend, backend_options=options) == body
