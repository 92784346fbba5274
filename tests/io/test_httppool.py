"""Connections kept, looked at, bounded and closed."""

import contextlib
import socket
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from bridge.io.httpclient import Call
from bridge.io.httppool import Origin, Pool, UpstreamError, UpstreamTimeout
from bridge.io.sockets import bind
from tests.raw import Peer, upstream

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def get(pool: Pool, target: bytes = b"/") -> int:
    async with Call(pool, "GET", target, [(b"Host", b"a")]) as call:
        head = await call.head()
        while await call.receive() is not None:
            pass
        return head.status


@contextlib.asynccontextmanager
async def answering(answer: bytes = OK, **options: Any) -> AsyncGenerator[tuple[Pool, list[Peer]]]:
    """A pool, its upstream, which answers every request so, and the connections it has had."""
    connections: list[Peer] = []

    async def script(peer: Peer) -> None:
        connections.append(peer)
        while await peer.until(b"\r\n\r\n"):
            await peer.send(answer)

    async with upstream(script) as port:
        pool = Pool(Origin("http", "127.0.0.1", port), **options)
        yield pool, connections
        pool.close()


@pytest.mark.parametrize(
    "origin, authority",
    [
        (Origin("http", "a.example", 80), "a.example"),
        (Origin("http", "a.example", 443), "a.example:443"),
        (Origin("https", "a.example", 443), "a.example"),
        (Origin("http", "::1", 8080), "[::1]:8080"),
    ],
)
def test_the_host_header_leaves_the_usual_port_out(origin: Origin, authority: str) -> None:
    assert origin.authority == authority
    assert str(origin) == f"{origin.scheme}://{authority}"


async def test_a_connection_is_used_again() -> None:
    async with answering() as (pool, connections):
        for _ in range(5):
            assert await get(pool) == 200
        assert len(connections) == 1


async def test_a_connection_that_was_idle_too_long_is_not_used() -> None:
    async with answering(idle_seconds=0) as (pool, connections):
        for _ in range(3):
            assert await get(pool) == 200
        assert len(connections) == 3


async def test_connecting_is_bounded() -> None:
    full = bind("127.0.0.1", 0)
    full.listen(0)
    waiting: list[socket.socket] = []
    for _ in range(4):
        one = socket.socket()
        one.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            one.connect(full.getsockname())
        waiting.append(one)
    pool = Pool(Origin("http", "127.0.0.1", full.getsockname()[1]), connect_seconds=0.05)
    with pytest.raises(UpstreamTimeout, match=r"no connection .* in 0\.05 s"):
        await get(pool)
    for one in [*waiting, full]:
        one.close()


@pytest.mark.parametrize("leave", ["close", "unasked", "reset"])
async def test_an_idle_connection_that_went_bad_is_not_used(leave: str) -> None:
    requests = 0
    bad = anyio.Event()

    async def script(peer: Peer) -> None:
        nonlocal requests
        await peer.until(b"\r\n\r\n")
        requests += 1
        if requests > 1:
            await peer.send(OK)
            await anyio.sleep_forever()
        await peer.send(OK)
        if leave == "unasked":
            await peer.send(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
            bad.set()
            await anyio.sleep_forever()
        await peer.leave(leave)
        bad.set()

    async with upstream(script) as port:
        pool = Pool(Origin("http", "127.0.0.1", port))
        assert await get(pool) == 200
        await bad.wait()
        assert await get(pool) == 200
        assert requests == 2
        pool.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 204 No Content\r\n\r\n",
    ],
)
async def test_a_connection_that_is_not_in_step_is_not_used_again(answer: bytes) -> None:
    async with answering(answer) as (pool, connections):
        for _ in range(3):
            assert await get(pool) == 200
        assert len(connections) == 3


async def test_so_many_at_a_time_and_no_more() -> None:
    at_once = most = 0
    full, go = anyio.Event(), anyio.Event()

    async def script(peer: Peer) -> None:
        nonlocal at_once, most
        while await peer.until(b"\r\n\r\n"):
            at_once += 1
            most = max(most, at_once)
            if at_once == 3:
                full.set()
            await go.wait()
            at_once -= 1
            await peer.send(OK)

    async with upstream(script) as port:
        pool = Pool(Origin("http", "127.0.0.1", port), limit=3)
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(get, pool)
            await full.wait()
            await anyio.wait_all_tasks_blocked()
            go.set()
        assert most == 3
        pool.close()


async def test_a_closed_pool_closes_its_connections() -> None:
    ended = anyio.Event()

    async def script(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.send(OK)
        await peer.rest()
        ended.set()

    async with upstream(script) as port:
        pool = Pool(Origin("http", "127.0.0.1", port))
        await get(pool)
        pool.close()
        await ended.wait()


async def test_an_upstream_that_is_not_there_is_named_in_the_error() -> None:
    free = bind("127.0.0.1", 0)
    port = free.getsockname()[1]
    free.close()
    with pytest.raises(
        UpstreamError, match=rf"cannot connect to http://127\.0\.0\.1:{port}: .*efused"
    ):
        await get(Pool(Origin("http", "127.0.0.1", port)))
    with pytest.raises(UpstreamError, match=r"cannot connect to http://no-such-host\.invalid"):
        await get(Pool(Origin("http", "no-such-host.invalid", 80)))
