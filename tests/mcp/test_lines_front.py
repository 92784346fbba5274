"""The endpoint over lines: both eras, requests side by side, the end of input."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from bridge.mcp import lines_front
from bridge.mcp.lines_front import converse
from bridge.mcp.service import McpProxy
from bridge.mcp.view import View
from tests.mcp import fake
from tests.mcp.callers import QUICK, hub_of
from tests.mcp.fake import Fake, Seen
from tests.mcp.test_catalogue import entry
from tests.mcp.test_relay import progress, streams
from tests.mcp.web import CAPABILITIES_KEY, MODERN, VERSION_KEY
from tests.raw import Peer

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


class Client:
    """A client on lines, in memory."""

    def __init__(self) -> None:
        self._to, self._from_us = anyio.create_memory_object_stream[bytes](100)
        self._from, self._received = anyio.create_memory_object_stream[bytes](100)

    async def receive(self) -> bytes:
        try:
            return await self._from_us.receive()
        except anyio.EndOfStream:
            return b""

    async def send(self, data: bytes) -> None:
        await self._from.send(data)

    async def say(self, *messages: Any, end: bytes = b"\n") -> None:
        text = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
        await self._to.send(text.removesuffix(b"\n") + end)

    async def raw(self, data: bytes) -> None:
        await self._to.send(data)

    async def hear(self) -> Json:
        data = await self._received.receive()
        assert data.endswith(b"\n")
        assert data.count(b"\n") == 1
        return json.loads(data)

    def leave(self) -> None:
        self._to.close()

    async def open(self) -> Json:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
        await self.say(request(0, "initialize", params))
        answer = await self.hear()
        await self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer


def request(ident: Any, method: str, params: Any = None) -> Json:
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params or {}}


@asynccontextmanager
async def talking(server: Fake, only: str | None = "s") -> AsyncGenerator[Client]:
    client = Client()
    async with server.running(), McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [entry("s", server)], {"s": QUICK})
        view = View(hub_of(proxy), only)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(converse, view, client.receive, client.send)
            yield client
            client.leave()


async def test_a_legacy_client_is_served() -> None:
    async with talking(Fake(eras=("legacy",))) as client:
        opened = await client.open()
        assert opened["result"]["serverInfo"]["name"] == "fake"
        await client.say(request("a", "tools/list"), request(2, "tools/call", {"name": "echo"}))
        answers = {answer["id"]: answer for answer in (await client.hear(), await client.hear())}
    assert answers["a"]["result"]["tools"] == [fake.TOOL]
    assert answers[2]["result"]["content"]


async def test_a_modern_client_needs_no_opening() -> None:
    meta = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}
    async with talking(Fake()) as client:
        await client.say(request(1, "server/discover", {"_meta": meta}))
        assert MODERN in (await client.hear())["result"]["supportedVersions"]
        await client.say(request(2, "tools/call", {"name": "echo", "_meta": meta}))
        assert (await client.hear())["result"]["resultType"] == "complete"
        await client.say(request(3, "ping", {"_meta": meta}))
        assert (await client.hear())["error"]["code"] == -32601
        await client.say(request(4, "tools/list", {"_meta": {**meta, VERSION_KEY: "2099-01-01"}}))
        assert (await client.hear())["error"]["code"] == -32022
        await client.say(request(5, "tools/list", {"_meta": {VERSION_KEY: MODERN}}))
        assert (await client.hear())["error"]["code"] == -32602


async def test_requests_run_side_by_side_and_a_line_may_come_in_pieces() -> None:
    release = anyio.Event()

    async def slow(server: Fake, peer: Peer, seen: Seen) -> None:
        await release.wait()
        await server.behave(peer, seen)

    server = Fake(eras=("legacy",))
    async with talking(server) as client:
        await client.open()
        server.acts["tools/call"] = [slow]
        await client.say(request(1, "tools/call", {"name": "echo"}))
        await server.until(lambda: bool(server.steps("tools/call")))
        for byte in json.dumps(request(2, "ping")).encode() + b"\r\n":
            await client.raw(bytes([byte]))
        assert (await client.hear())["id"] == 2
        release.set()
        assert (await client.hear())["id"] == 1


async def test_progress_and_cancellation_are_the_callers() -> None:
    server = Fake(eras=("legacy",))
    async with talking(server) as client:
        await client.open()
        server.acts["tools/call"] = [streams(progress(1)), fake.hangs]
        params = {"name": "echo", "_meta": {"progressToken": "t"}}
        await client.say(request(1, "tools/call", params))
        assert (await client.hear())["params"] == {"progressToken": "t", "progress": 1}
        assert (await client.hear())["id"] == 1
        await client.say(request(2, "tools/call", params))
        await server.until(lambda: len(server.steps("tools/call")) == 2)
        gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
        await client.say(gone)
        assert (await client.hear())["result"]["isError"] is True
        await server.until(lambda: bool(server.steps("notifications/cancelled")))


@pytest.mark.parametrize(
    "noise, code", [(b"hello\n", -32700), (b"[]\n", -32600), (b"3\n", -32600), (b"\xff\n", -32700)]
)
async def test_noise_is_refused_and_the_client_lives_on(noise: bytes, code: int) -> None:
    async with talking(Fake()) as client:
        await client.raw(noise)
        refusal = await client.hear()
        assert (refusal["id"], refusal["error"]["code"]) == (None, code)
        await client.raw(b"\n\r\n")
        await client.say(request(1, "ping"))
        assert (await client.hear())["result"] == {}


async def test_what_runs_at_the_end_of_input_has_a_moment_to_be_answered() -> None:
    server = Fake(eras=("legacy",))
    async with talking(server) as client:
        await client.open()
        await client.say(request(1, "tools/call", {"name": "echo"}), end=b"")
        client.leave()
        assert (await client.hear())["result"]["content"]


async def test_what_does_not_end_then_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_front, "_LAST_MOMENT", 0.05)
    server = Fake(eras=("legacy",))
    async with talking(server) as client:
        await client.open()
        server.acts["tools/call"] = [fake.hangs]
        await client.say(request(1, "tools/call", {"name": "echo"}))
        await server.until(lambda: bool(server.steps("tools/call")))
        client.leave()
        await server.until(lambda: bool(server.steps("notifications/cancelled")))


async def test_a_client_is_told_of_changed_lists() -> None:
    server = Fake(eras=("legacy",))
    async with talking(server, only=None) as client:
        await client.open()
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        server.acts["tools/call"] = [streams({**changed, "params": {}})]
        await client.say(request(1, "tools/call", {"name": "s_echo"}))
        heard = [await client.hear(), await client.hear()]
    assert changed in heard
