"""A caller with a lasting connection: its ids are its own, its questions are answered once."""

from typing import Any

import anyio
import pytest

from bridge.mcp.messages import Answer
from bridge.mcp.peer import Peer
from bridge.mcp.service import McpProxy
from bridge.mcp.view import View
from bridge.wire import codec, jsonrpc
from bridge.wire.codec import Raw
from tests.mcp import fake
from tests.mcp.callers import QUICK, hub_of
from tests.mcp.fake import Fake
from tests.mcp.test_catalogue import entry

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


def parsed(message: Json) -> Any:
    return jsonrpc.parse(codec.encode({"jsonrpc": "2.0", **message}))


async def nowhere(message: bytes) -> None:
    return


class Asked:
    """Keeps what the caller is sent."""

    def __init__(self) -> None:
        self.sent: list[Json] = []
        self.news = anyio.Event()

    async def send(self, message: bytes) -> None:
        self.sent.append(codec.decode(message))
        self.news.set()


@pytest.mark.parametrize(
    "said, expected",
    [
        ({"result": {"roots": []}}, b'{"roots":[]}'),
        ({"error": {"code": -1, "message": "no"}}, b'{"code":-1,"message":"no"}'),
        ({}, b'{"code":-32603,"message":"the client answered with nothing"}'),
    ],
)
async def test_a_question_waits_for_its_own_answer(said: Json, expected: bytes) -> None:
    async with McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [])
        peer, asked = Peer(View(hub_of(proxy))), Asked()
        answers: list[Answer] = []

        async def ask() -> None:
            answers.append(await peer.ask("roots/list", Raw(b"null"), asked.send))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await asked.news.wait()
            ident = asked.sent[0]["id"]
            # One to another id, and one too many, are nobody's.
            peer.settled(parsed({"id": ident + 1, "result": 1}))
            peer.settled(parsed({"id": ident, **said}))
            peer.settled(parsed({"id": ident, "result": {"late": True}}))
    assert asked.sent == [{"jsonrpc": "2.0", "id": ident, "method": "roots/list"}]
    (answer,) = answers
    assert bytes(answer.result or answer.error or b"") == expected


async def test_ending_a_peer_cancels_what_runs_for_it() -> None:
    server = Fake(eras=("legacy",))
    async with server.running(), McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [entry("s", server)], {"s": QUICK})
        await proxy.list_tools("a")
        server.acts["tools/call"] = [fake.hangs]
        peer = Peer(View(hub_of(proxy), "s"))
        request = parsed({"id": 1, "method": "tools/call", "params": {"name": "echo"}})
        responses: list[bytes] = []

        async def call() -> None:
            responses.append(await peer.serve(request, nowhere))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await server.until(lambda: bool(server.steps("tools/call")))
            assert peer.busy
            peer.end()
        assert not peer.busy
        await server.until(lambda: bool(server.steps("notifications/cancelled")))
    assert b'"cancelled"' in responses[0]


@pytest.mark.parametrize("params", [[1], "x", 3, True])
async def test_params_must_be_an_object(params: Any) -> None:
    async with McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [])
        peer = Peer(View(hub_of(proxy)))
        request = parsed({"id": 1, "method": "tools/list", "params": params})
        answer = codec.decode(await peer.serve(request, nowhere))
    assert answer["error"]["code"] == -32602


async def test_a_cancellation_of_nothing_is_nothing() -> None:
    async with McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [])
        peer = Peer(View(hub_of(proxy)))
        for params in ({"requestId": 9}, {}, None):
            peer.notified(parsed({"method": "notifications/cancelled", "params": params}))
        peer.notified(parsed({"method": "notifications/acme", "params": {}}))


@pytest.mark.parametrize("level", [[], ["info"], {}, 3, None, "loud"])
async def test_a_log_level_that_is_none_is_refused(level: Any) -> None:
    async with McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [])
        peer = Peer(View(hub_of(proxy)))
        request = parsed({"id": 1, "method": "logging/setLevel", "params": {"level": level}})
        answer = codec.decode(await peer.serve(request, nowhere))
    assert answer["error"]["code"] == -32602


async def test_a_fault_of_ours_is_an_error_of_the_request_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def breaks(_: Any) -> Answer:
        raise ZeroDivisionError("at the worst moment")

    async with McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [])
        peer = Peer(View(hub_of(proxy)))
        with monkeypatch.context() as patched:
            patched.setattr("bridge.mcp.peer.answered", breaks)
            answer = codec.decode(await peer.serve(parsed({"id": 1, "method": "ping"}), nowhere))
        again = codec.decode(await peer.serve(parsed({"id": 2, "method": "ping"}), nowhere))
    assert answer["error"]["code"] == -32603
    assert "at the worst moment" in answer["error"]["message"]
    assert again["result"] == {}


async def test_a_cancelled_list_ends_with_an_error_and_a_cancelled_call_with_a_result() -> None:
    server = Fake(eras=("legacy",), capabilities={"tools": {}, "prompts": {}})
    async with server.running(), McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [entry("s", server)], {"s": QUICK})
        await hub_of(proxy).listed(20)
        server.acts["prompts/list"] = server.acts["tools/call"] = [fake.hangs] * 2
        peer = Peer(View(hub_of(proxy), "s"))
        answers: dict[str, Json] = {}

        async def serve(method: str, params: Json) -> None:
            request = parsed({"id": method, "method": method, "params": params})
            answers[method] = codec.decode(await peer.serve(request, nowhere))

        async with anyio.create_task_group() as tasks:
            for method, params in (("prompts/list", {}), ("tools/call", {"name": "echo"})):
                tasks.start_soon(serve, method, params)
                await server.until(lambda method=method: bool(server.steps(method)))
                gone = {"requestId": method}
                peer.notified(parsed({"method": "notifications/cancelled", "params": gone}))
    assert answers["prompts/list"]["error"]["code"] == jsonrpc.REQUEST_CANCELLED
    assert answers["tools/call"]["result"]["isError"] is True
