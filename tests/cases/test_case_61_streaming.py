"""Case 61: a stream is relayed as it comes. The upstream sends each event only after the agent has
had the one before, so a proxy that collects any would never see the second.
"""

import anyio
import pytest

from tests.model.harness import Stand, read_request, standing
from tests.raw import Peer

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%b\r\n"


@pytest.mark.parametrize("framing", ["chunked", "close"])
async def test_each_event_reaches_the_agent_before_the_next_is_sent(framing: str) -> None:
    had = [anyio.Event() for _ in range(11)]

    async def script(peer: Peer, stand: Stand) -> None:
        await read_request(peer)
        await peer.send(HEAD % (b"Transfer-Encoding: chunked\r\n" if framing == "chunked" else b""))
        for number in range(10):
            await had[number].wait()
            event = b"data: event %d %b\n\n" % (number, b"x" * 20)
            await peer.send(
                b"%x\r\n%b\r\n" % (len(event), event) if framing == "chunked" else event
            )
        await had[10].wait()
        if framing == "chunked":
            await peer.send(b"0\r\n\r\n")

    async with standing(script) as stand:
        peer = await stand.dial()
        await peer.send(stand.request(b'{"messages":[],"stream":true}'))
        # The head is there before the first event.
        assert b"text/event-stream" in await peer.until(b"\r\n\r\n")
        for number in range(10):
            had[number].set()
            await peer.until(b"data: event %d " % number)
        had[10].set()
        await peer.until(b"0\r\n\r\n")
        await peer.close()


async def test_a_request_is_streamed_as_well() -> None:
    had = [anyio.Event() for _ in range(5)]

    async def script(peer: Peer, stand: Stand) -> None:
        await peer.until(b"\r\n\r\n")
        for number in range(5):
            await peer.until(b"part %d" % number)
            had[number].set()
        await peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with standing(script) as stand:
        peer = await stand.dial()
        await peer.send(stand.request(b"", b"/v1/files").replace(b": 0\r\n", b": 30\r\n"))
        for number in range(5):
            await peer.send(b"part %d" % number)
            await had[number].wait()
        await peer.until(b"204 No Content")
        await peer.close()
