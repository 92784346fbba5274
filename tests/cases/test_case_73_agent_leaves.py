"""Case 73: an agent that leaves takes its upstream connection with it, at every moment."""

import os

import anyio
import pytest

from tests.model.harness import Stand, standing
from tests.raw import Peer

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("leave", ["close", "half", "reset"])
@pytest.mark.parametrize("phase", ["upload", "waiting", "headed", "streaming", "pipelined"])
async def test_the_upstream_sees_the_end(leave: str, phase: str) -> None:
    there, ended = anyio.Event(), anyio.Event()

    async def script(peer: Peer, stand: Stand) -> None:
        await peer.until(b"\r\n\r\n")
        if phase == "upload":
            await peer.count(3)
        if phase in ("headed", "streaming"):
            await peer.send(HEAD)
        if phase == "streaming":
            await peer.send(b"3\r\nabc\r\n")
        there.set()
        await peer.rest()
        ended.set()

    async with standing(script) as stand:
        peer = await stand.dial()
        if phase == "upload":
            head = stand.request(b"", b"/v1/files").replace(b": 0\r\n", b": 100\r\n")
            await peer.send(head + b"abc")
        else:
            await peer.send(stand.request(b'{"messages":[]}') * (3 if phase == "pipelined" else 1))
        await there.wait()
        if phase in ("headed", "streaming"):
            await peer.until(b"\r\n\r\n")
        if phase == "streaming":
            await peer.until(b"abc")
        await peer.leave(leave)
        await ended.wait()
        assert (await stand.event())["outcome"] == "gone"
        await peer.close()


async def test_an_agent_that_stops_reading_and_leaves_is_noticed() -> None:
    ended = anyio.Event()

    async def script(peer: Peer, stand: Stand) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.send(HEAD)
        try:
            while True:
                await peer.send(b"10000\r\n" + bytes(1 << 16) + b"\r\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            ended.set()

    async with standing(script) as stand:
        peer = await stand.dial()
        await peer.send(stand.request(b'{"messages":[]}'))
        await peer.until(b"\r\n\r\n")
        await peer.reset()
        await ended.wait()


async def test_no_descriptor_is_left_behind() -> None:
    arrived, changed = 0, anyio.Event()

    async def script(peer: Peer, stand: Stand) -> None:
        nonlocal arrived
        await peer.until(b"\r\n\r\n")
        arrived += 1
        changed.set()
        await peer.rest()

    async def come_and_go(stand: Stand, count: int) -> None:
        nonlocal changed
        wanted = arrived + count
        peers = [await stand.dial() for _ in range(count)]
        for peer in peers:
            await peer.send(stand.request(b'{"messages":[]}'))
        while arrived < wanted:
            await changed.wait()
            changed = anyio.Event()
        for peer in peers:
            await peer.close()
        await stand.event(wanted - 1)

    async with standing(script) as stand:
        await come_and_go(stand, 1)  # uvloop opens one of its own with the first.
        await stand.departed(1)
        await anyio.wait_all_tasks_blocked()
        before = len(os.listdir("/proc/self/fd"))
        await come_and_go(stand, 20)
        await stand.departed(21)
        await anyio.wait_all_tasks_blocked()
        assert len(os.listdir("/proc/self/fd")) == before
