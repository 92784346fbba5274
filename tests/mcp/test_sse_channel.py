"""Servers of the transport before streamable HTTP: one stream in, POSTs out."""

import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from bridge.mcp.service import McpProxy
from bridge.mcp.settings import from_file
from bridge.wire import codec
from tests.mcp import fake
from tests.mcp.callers import QUICK, Silent, one_call, outcome
from tests.raw import Peer, upstream

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


class SseServer:
    """Sessions by number; `faults` are used up one a call."""

    def __init__(self, *, address: str = "") -> None:
        self.address = address
        self.streams: dict[str, Peer] = {}
        self.opened = 0
        self.open = 0
        self.executed: Counter[str] = Counter()
        self.faults: list[str] = []
        self.seen: list[Json] = []
        self.refuses_posts = 0
        self.refused = 0
        self.port = 0
        self.changed = anyio.Event()

    async def script(self, peer: Peer) -> None:
        while True:
            head = (await peer.until(b"\r\n\r\n")).decode()
            verb, path, _ = head.split(" ", 2)
            if verb == "GET":
                await self._stream(peer)
                return
            size = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
            message = json.loads(await peer.count(size))
            if self.refuses_posts and "session=" not in path:
                self.refused += 1
                await peer.send(fake.reply(self.refuses_posts, "no"))
                continue
            await self._take(peer, path.rpartition("=")[2], message)

    async def _stream(self, peer: Peer) -> None:
        self.opened += 1
        self.open += 1
        session = str(self.opened)
        self.streams[session] = peer
        address = self.address or f"/messages?session={session}"
        await peer.send(fake.STREAM + f"event: endpoint\ndata: {address}\n\n".encode())
        try:
            await fake.silence(peer)
        finally:
            self.open -= 1
            self.changed.set()

    async def _take(self, peer: Peer, session: str, message: Json) -> None:
        self.seen.append(message)
        method = message.get("method")
        stream = self.streams[session]
        found: Json = {}
        if method == "initialize":
            found = {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {}}
        elif method == "tools/list":
            found = {"tools": [fake.TOOL]}
        elif method == "tools/call":
            fault = self.faults.pop(0) if self.faults else ""
            if fault == "503":
                await peer.send(fake.reply(503, "busy"))
                return
            self.executed["echo"] += 1
            if fault == "drop":
                await peer.send(fake.reply(202, "Accepted"))
                await stream.close()
                return
            if fault == "unended":
                found = fake.answer(message["id"], {"content": [{"type": "text", "text": session}]})
                await stream.send(b"data: " + json.dumps(found).encode())
                await stream.close()
                await peer.send(fake.reply(202, "Accepted"))
                return
            if fault == "500":
                await peer.send(fake.reply(500, "oops"))
                return
            token = message["params"]["_meta"].get("progressToken")
            if token is not None:
                told = {"progressToken": token, "progress": 1}
                note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": told}
                await stream.send(fake.event(note))
            found = {"content": [{"type": "text", "text": session}]}
        # The answer goes out before the POST is accepted: both orders are allowed.
        if message.get("id") is not None:
            await stream.send(fake.event(fake.answer(message["id"], found)))
        await peer.send(fake.reply(202, "Accepted"))


@asynccontextmanager
async def proxied(
    server: SseServer, options: Json | None = None
) -> AsyncGenerator[tuple[McpProxy, list[Json]]]:
    events: list[Json] = []
    async with upstream(server.script) as server.port, McpProxy(events.append) as proxy:
        url = f"http://127.0.0.1:{server.port}/sse"
        entry = {"type": "sse", "name": "s", "url": url, "headers": []}
        proxy.mount("a", [entry], {"s": {**QUICK, **(options or {})}})
        yield proxy, events
        while server.open:
            server.changed = anyio.Event()
            await server.changed.wait()


async def test_a_call_has_a_stream_of_its_own() -> None:
    server = SseServer()
    async with proxied(server) as (proxy, events):
        sessions = [
            codec.decode(await proxy.call_tool("a", "s_echo", {}))["content"][0]["text"]
            for _ in range(3)
        ]
    assert sessions == ["2", "3", "4"]
    assert [event["outcome"] for event in events] == ["answer"] * 3


@pytest.mark.parametrize("fault", ["drop", "500"])
@pytest.mark.parametrize("delivery, executions", [("at-least-once", 2), ("safe", 1)])
async def test_a_lost_answer(fault: str, delivery: str, executions: int) -> None:
    server = SseServer()
    async with proxied(server, {"delivery": delivery}) as (proxy, events):
        await proxy.list_tools("a")
        server.faults = [fault]
        result = codec.decode(await proxy.call_tool("a", "s_echo", {}))
    assert server.executed["echo"] == executions
    assert events[0]["outcome"] == "lost"
    assert outcome(result) == ("answered" if executions == 2 else "outcome_unknown")


async def test_an_answer_whose_event_lacks_its_end_is_one() -> None:
    server = SseServer()
    async with proxied(server) as (proxy, events):
        await proxy.list_tools("a")
        server.faults = ["unended"]
        result = codec.decode(await proxy.call_tool("a", "s_echo", {}))
    assert outcome(result) == "answered"
    assert server.executed["echo"] == 1
    assert len(events) == 1


async def test_a_call_turned_away_is_made_again_in_every_mode() -> None:
    server = SseServer()
    async with proxied(server, {"delivery": "never"}) as (proxy, events):
        await proxy.list_tools("a")
        server.faults = ["503"]
        await proxy.call_tool("a", "s_echo", {})
    assert server.executed["echo"] == 1
    assert [event["outcome"] for event in events] == ["refused", "answer"]


async def test_progress_is_relayed() -> None:
    caller = Silent()
    async with proxied(SseServer()) as (proxy, _):
        await one_call(proxy, "s", "echo", {"progressToken": "t"}, caller)
    assert [message["params"]["progress"] for message in caller.told] == [1]


async def test_an_address_of_another_origin_is_not_posted_to() -> None:
    server = SseServer(address="http://127.0.0.2:9/messages")
    async with proxied(server) as (proxy, events):
        result = codec.decode(await one_call(proxy, "s", "echo"))
    assert outcome(result) == "mcp_failed"
    assert "another origin" in result["content"][0]["text"]
    assert server.seen == []
    assert len(events) == 1


@pytest.mark.parametrize("address", ["http://127.0.0.1:99999/x", "http://[::1/x"])
async def test_an_address_that_is_none_is_told(address: str) -> None:
    server = SseServer(address=address)
    async with proxied(server) as (proxy, _):
        result = codec.decode(await one_call(proxy, "s", "echo"))
    assert outcome(result) == "mcp_failed"
    assert address in result["content"][0]["text"]
    assert "internal error" not in result["content"][0]["text"]


async def test_what_is_no_stream_is_told() -> None:
    async with fake.Fake().running() as server, McpProxy(lambda event: None) as proxy:
        server.acts["GET"] = [fake.says(200, "hello")] * 3
        entry = {"type": "sse", "name": "s", "url": server.url, "headers": []}
        proxy.mount("a", [entry])
        result = codec.decode(await one_call(proxy, "s", "echo"))
    assert "not a stream" in result["content"][0]["text"]


@pytest.mark.parametrize("status", [404, 405])
async def test_a_server_whose_kind_was_not_said_is_found_to_be_of_the_old_one(status: int) -> None:
    server = SseServer()
    server.refuses_posts = status
    async with upstream(server.script) as port, McpProxy(lambda event: None) as proxy:
        servers = {"mcpServers": {"s": {"url": f"http://127.0.0.1:{port}/sse"}}}
        loaded = from_file(codec.encode(servers), {}, where="f")
        proxy.mount_upstreams("a", loaded.upstreams)
        for _ in range(2):
            result = codec.decode(await proxy.call_tool("a", "s_echo", {}))
            assert outcome(result) == "answered"
    assert server.executed["echo"] == 2
    # Found out once.
    assert server.refused == 2


async def test_one_that_is_of_neither_kind_is_told_by_its_first_refusal() -> None:
    server = fake.Fake()
    for step in ("server/discover", "initialize", "GET"):
        server.acts[step] = [fake.says(404, "nothing here")] * 9
    async with server.running(), McpProxy(lambda event: None) as proxy:
        servers = {"mcpServers": {"s": {"url": server.url, "attempts": 1}}}
        loaded = from_file(codec.encode(servers), {}, where="f")
        proxy.mount_upstreams("a", loaded.upstreams)
        result = codec.decode(await one_call(proxy, "s", "echo"))
    assert "HTTP 404: nothing here" in result["content"][0]["text"]
