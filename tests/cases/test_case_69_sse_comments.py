"""Case 69: comments and pings are relayed at once, count as life, and are no data to us."""

import anyio
import pytest

from tests.model.harness import Stand, read_request, standing
from tests.raw import Peer

pytestmark = pytest.mark.anyio

PIECES = [
    *[b": PROCESSING\n\n"] * 6,
    b": ping\n",
    b"event: ping\n\n",
    b"data: : keepalive\n\n",
    b'data: {"model":"m","choices":[{"delta":{"content":"hi"},"finish_reason":null}]}\r\n\r\n',
    b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
]


async def test_every_line_is_relayed_at_once_and_only_data_is_read() -> None:
    had = anyio.Event()

    async def script(peer: Peer, stand: Stand) -> None:
        nonlocal had
        await read_request(peer)
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
        await peer.send(b"Content-Length: %d\r\n\r\n" % sum(map(len, PIECES)))
        for piece in PIECES:
            await peer.send(piece)
            await had.wait()
            had = anyio.Event()

    async with standing(script) as stand:
        peer = await stand.dial()
        await peer.send(stand.request(b'{"messages":[],"stream":true}'))
        await peer.until(b"\r\n\r\n")
        for piece in PIECES:
            assert await peer.count(len(piece)) == piece
            had.set()
        event = await stand.event()
        assert (event["finish_reason"], event["outcome"], event["model"]) == (
            "stop",
            "complete",
            "m",
        )
        await peer.close()


async def test_comments_keep_an_idle_timeout_from_running_out() -> None:
    async def script(peer: Peer, stand: Stand) -> None:
        await read_request(peer)
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for _ in range(8):
            await anyio.sleep(0.1)
            await peer.send(b": PROCESSING\n\n")
        await peer.send(b"data: [DONE]\n\n")

    async with standing(script, idle_timeout=0.4) as stand:
        peer = await stand.dial()
        await peer.send(stand.request(b'{"messages":[]}'))
        found = await peer.until(b"0\r\n\r\n")
        assert found.count(b": PROCESSING\n\n") == 8
        assert (await stand.event())["outcome"] == "complete"
        await peer.close()
