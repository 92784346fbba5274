"""One session with a server: how it is opened, what it hears, how it takes leave."""

from typing import Any

import pytest

from bridge.mcp.service import McpProxy
from tests.mcp import fake
from tests.mcp.callers import called, outcome
from tests.mcp.fake import Fake, Seen
from tests.mcp.test_catalogue import entry
from tests.mcp.test_http_front import endpoint
from tests.mcp.test_relay import note
from tests.raw import Peer

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


async def test_a_call_is_initialize_initialized_call_and_farewell() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        await called(server, {})
    own = [seen for seen in server.seen if seen.headers.get("mcp-session-id") == "s2"]
    steps = [seen.step for seen in own]
    assert steps == ["notifications/initialized", "tools/call", "DELETE"]
    assert len(server.steps("initialize")) == 2


async def test_a_modern_call_is_one_request() -> None:
    server = Fake(eras=("modern",))
    async with endpoint(server) as web:
        await web.ask("tools/list")
        await web.ask("tools/call", {"name": "echo"})
    assert [seen.step for seen in server.seen] == ["server/discover", "tools/list", "tools/call"]


@pytest.mark.parametrize(
    "odd",
    [
        *({}, {"protocolVersion": 3}, [], {"capabilities": {}, "serverInfo": {}}),
        *({"protocolVersion": version} for version in ("", "\ud800", "é", "1\r\nX: y", "a b")),
    ],
)
async def test_an_answer_to_initialize_that_says_nothing_is_a_failure_to_open(odd: Any) -> None:
    async def answers(server: Fake, peer: Peer, seen: Seen) -> None:
        await peer.send(fake.reply(200, fake.answer(seen.id, odd)))

    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [entry("s", server)], {"s": {"backoff": {"initial": 0}}})
        await proxy.list_tools("a")
        server.acts["initialize"] = [answers]
        await proxy.call_tool("a", "s_echo")
    assert server.executed == {"echo": 1}


async def test_the_callers_log_level_is_set_in_each_session_of_a_server_that_logs() -> None:
    server = Fake(eras=("legacy",), capabilities={"tools": {}, "logging": {}})
    async with endpoint(server) as web:
        await web.open()
        assert (await web.call("logging/setLevel", {"level": "warning"})).result == {}
        assert (await web.call("logging/setLevel", {"level": "loud"})).error["code"] == -32602
        for _ in range(2):
            await web.call("tools/call", {"name": "echo"})
    levels = [seen.message["params"]["level"] for seen in server.steps("logging/setLevel")]
    assert levels == ["warning"] * 2


async def test_a_modern_servers_log_level_goes_with_the_call() -> None:
    server = Fake(eras=("modern",))
    async with endpoint(server) as web:
        await web.open()
        await web.call("logging/setLevel", {"level": "debug"})
        await web.call("tools/call", {"name": "echo"})
    (call,) = server.steps("tools/call")
    assert call.meta["io.modelcontextprotocol/logLevel"] == "debug"


@pytest.mark.parametrize(
    "capabilities, asked, streams",
    [
        ({"tools": {}}, {}, 0),
        ({"tools": {"listChanged": False}}, {}, 0),
        ({"tools": {"listChanged": True}}, {}, 1),
        ({"tools": {}, "logging": {}}, {}, 1),
        ({"tools": {}}, {"sampling": {}}, 1),
    ],
)
async def test_a_servers_own_stream_is_opened_where_it_may_say_something(
    capabilities: Json, asked: Json, streams: int
) -> None:
    server = Fake(eras=("legacy",), capabilities=capabilities)
    async with endpoint(server) as web:
        await web.open(asked)
        for _ in range(3):
            await web.call("tools/call", {"name": "echo"})
    # A server that has none is not asked a second time.
    assert len(server.steps("GET")) == streams


async def test_what_comes_on_the_servers_own_stream_reaches_the_caller() -> None:
    log = note("notifications/message", {"level": "info", "data": "x"})
    server = Fake(eras=("legacy",), capabilities={"tools": {}, "logging": {}})
    told: list[Peer] = []

    async def own_stream(server: Fake, peer: Peer, seen: Seen) -> None:
        await peer.send(fake.STREAM)
        told.append(peer)
        await fake.silence(peer)

    async def speaks(server: Fake, peer: Peer, seen: Seen) -> None:
        await told[0].send(fake.event(log))
        await go_on.wait()
        await server.behave(peer, seen)

    import anyio

    go_on = anyio.Event()
    async with endpoint(server) as web:
        await web.open()
        server.acts["GET"] = [own_stream]
        server.acts["tools/call"] = [speaks]
        async with web.streaming(web.message("tools/call", {"name": "echo"})) as stream:
            assert await stream.event() == log
            go_on.set()
            assert (await stream.event())["result"]["content"]


async def test_a_list_that_is_lost_on_the_way_is_no_lost_call() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/list"] = [fake.closes, fake.says(500)]
        result, events = await called(server, {"delivery": "never"})
    assert outcome(result) == "answered"
    assert len(events) == 1
