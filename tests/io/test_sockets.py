"""Sockets against real peers: ends told apart from breaks, idle connections looked at."""

import socket

import anyio
import pytest

from bridge.io.sockets import bind, connect
from tests.raw import Peer, upstream

pytestmark = pytest.mark.anyio


async def test_an_end_and_a_break_are_told_apart() -> None:
    async def script(peer: Peer) -> None:
        if await peer.count(1) == b"e":
            await peer.close()
        else:
            await peer.reset()

    async with upstream(script) as port:
        sock = await connect("127.0.0.1", port)
        await sock.send(b"e")
        assert await sock.receive() == b""
        sock.close()
        sock = await connect("127.0.0.1", port)
        await sock.send(b"r")
        with pytest.raises(anyio.BrokenResourceError):
            await sock.receive()
        sock.close()


async def test_megabytes_pass_both_ways_unharmed() -> None:
    async def script(peer: Peer) -> None:
        async for data in peer.stream:
            await peer.send(data)

    sent = bytes(range(256)) * (16 << 12)
    async with upstream(script) as port:
        sock = await connect("localhost", port)
        got: list[bytes] = []

        async def collect() -> None:
            while sum(map(len, got)) < len(sent) + 5:
                got.append(await sock.receive())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect)
            await sock.send(b"head ", sent)
        assert b"".join(got) == b"head " + sent
        sock.close()


async def test_an_idle_connection_shows_whether_it_is_still_good() -> None:
    go = anyio.Event()

    async def script(peer: Peer) -> None:
        word = await peer.count(1)
        if word == b"d":
            await peer.send(b"unasked")
            await go.wait()
        elif word == b"i":
            await go.wait()

    async with upstream(script) as port:
        for word, good in ((b"i", True), (b"d", False), (b"e", False)):
            sock = await connect("127.0.0.1", port)
            await sock.send(word)
            if not good:
                await anyio.wait_readable(sock.fileno())
            assert sock.untouched() is good
            sock.close()
        go.set()


async def test_a_refused_connection_is_an_oserror_that_says_so() -> None:
    free = bind("127.0.0.1", 0)
    port = free.getsockname()[1]
    free.close()
    for host in ("127.0.0.1", "localhost"):
        with pytest.raises(OSError, match=r"(?i)refused"):
            await connect(host, port)


async def test_closing_wakes_the_reader_and_the_writer() -> None:
    listener = bind("127.0.0.1", 0)
    sock = await connect("127.0.0.1", listener.getsockname()[1])
    woken: list[str] = []

    async def read() -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await sock.receive()
        woken.append("reader")

    async def write() -> None:
        with pytest.raises((anyio.ClosedResourceError, anyio.BrokenResourceError)):
            await sock.send(b"x" * (64 << 20))
        woken.append("writer")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        await anyio.wait_all_tasks_blocked()
        sock.close()
    assert sorted(woken) == ["reader", "writer"]
    listener.close()


async def test_the_second_address_is_tried_when_the_first_refuses() -> None:
    async def script(peer: Peer) -> None:
        await peer.send(b"hi")

    async with upstream(script) as port:
        found = socket.getaddrinfo("localhost", port, type=socket.SOCK_STREAM)
        sock = await connect("localhost", port)
        assert await sock.receive() == b"hi", found
        sock.close()
