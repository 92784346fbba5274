"""Case 71: a stream that breaks off upstream breaks off for the agent too, with nothing added."""

import anyio
import pytest

from tests.model.harness import Stand, read_request, standing
from tests.raw import Peer

pytestmark = pytest.mark.anyio

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
CLOSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
CHUNK = b'10\r\ndata: {"x":123}\n\r\n'


@pytest.mark.parametrize(
    "how, head, chunk",
    [
        ("reset", CHUNKED, CHUNK),
        ("close", CHUNKED, CHUNK),
        ("reset", LENGTH, b"abc"),
        ("close", LENGTH, b"abc"),
        ("reset", CLOSE, b"abc"),  # closed, it would have ended well
    ],
)
@pytest.mark.parametrize("chunks", [0, 3])
async def test_the_agent_sees_a_broken_stream(
    how: str, head: bytes, chunk: bytes, chunks: int
) -> None:
    had = anyio.Event()

    async def script(peer: Peer, stand: Stand) -> None:
        stand.requests.append(await read_request(peer))
        await peer.send(head + chunk * chunks)
        await had.wait()
        await peer.leave(how)

    async with standing(script) as stand:
        peer = await stand.dial()
        await peer.send(stand.request(b'{"messages":[],"stream":true}'))
        await peer.until(b"\r\n\r\n")
        framed = b"3\r\nabc\r\n" if head is CLOSE else chunk
        body = b"".join(
            [await peer.count(len(framed)) for _ in range(chunks if head is not CLOSE else 0)]
        )
        had.set()
        rest, _ = await peer.rest()
        if head is CLOSE:
            assert not rest.endswith(b"0\r\n\r\n")
        else:
            assert body + rest == chunk * chunks
        # To the end of a broken chunked or counted body no agent can be mistaken.
        assert b"0\r\n\r\n" not in rest
        event = await stand.event()
        assert event["outcome"] == "cut"
        assert "127.0.0.1" in event["error"]
        assert "finish_reason" not in event
        assert len(stand.requests) == 1


async def test_before_any_head_the_agent_gets_an_error_it_can_read() -> None:
    async def script(peer: Peer, stand: Stand) -> None:
        stand.requests.append(await read_request(peer))
        await peer.reset()

    async with standing(script) as stand:
        found = await stand.exchange(stand.request(b'{"messages":[]}'))
        assert found.startswith(b"HTTP/1.1 502 ")
        assert (await stand.event())["outcome"] == "failed"
        assert len(stand.requests) == 1
