"""The proxy as the session layer uses it: mounts, entries, shims, the host's own calls."""

import json
from typing import Any

import anyio
import anyio.to_thread
import pytest

from bridge.errors import BridgeError, RequestFailed
from bridge.mcp.service import McpProxy
from bridge.wire import codec
from tests.mcp import fake
from tests.mcp.callers import outcome
from tests.mcp.fake import Fake, Seen
from tests.mcp.web import Web
from tests.raw import Peer

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
OK = {"content": [{"type": "text", "text": "ok"}]}


def http(name: str, url: str = "http://127.0.0.1:9/mcp", **more: Any) -> Json:
    return {"type": "http", "name": name, "url": url, "headers": [], **more}


async def test_the_agent_sees_the_same_names_at_loopback_addresses() -> None:
    async with McpProxy(lambda event: None) as proxy:
        given = [
            http("tools", headers=[{"name": "Authorization", "value": "Bearer s3cret"}]),
            {"name": "local", "command": "/bin/true", "args": [], "env": []},
            {"type": "sse", "name": "a b/c", "url": "http://127.0.0.1:9/sse", "headers": []},
        ]
        seen = proxy.mount("", given)
    assert [entry["name"] for entry in seen] == ["tools", "local", "a b/c"]
    for entry, segment in zip(seen, ("tools", "local", "a%20b%2Fc"), strict=True):
        assert entry["type"] == "http"
        assert entry["headers"] == []
        assert entry["url"].startswith("http://127.0.0.1:")
        assert entry["url"].endswith(f"/mcp/{segment}")
    assert "s3cret" not in json.dumps(seen)


async def test_two_sessions_have_paths_of_their_own_until_they_are_forgotten() -> None:
    async with Fake().running() as server, McpProxy(lambda event: None) as proxy:
        (one,) = proxy.mount("1", [http("s", server.url)])
        (two,) = proxy.mount("2", [http("s", server.url)])
        first, second = Web(one["url"]), Web(two["url"])
        assert first.path != second.path
        await first.open()
        await second.open()
        proxy.forget("1")
        proxy.forget("1")
        assert (await first.call("ping")).status == 404
        assert (await second.call("ping")).status == 200


async def test_mounting_anew_replaces_what_was_there() -> None:
    async with Fake().running() as server, McpProxy(lambda event: None) as proxy:
        (before,) = proxy.mount("a", [http("old", server.url)])
        proxy.mount("a", [http("new", server.url)])
        assert (await Web(before["url"]).call("ping")).status == 404
        listed = codec.decode(await proxy.list_tools("a"))
    assert [tool["name"] for tool in listed["tools"]] == ["new_echo"]


async def test_a_server_can_be_left_as_it_is() -> None:
    given = [http("on"), http("off", headers=[{"name": "K", "value": "v"}])]
    async with McpProxy(lambda event: None) as proxy:
        seen = proxy.mount("a", given, {"off": {"proxy": False}})
    assert seen[1] == given[1]
    assert seen[0] != given[0]


@pytest.mark.parametrize(
    "servers, options, words",
    [
        ([{"type": "http", "name": "s"}], {}, "'s'"),
        ([http("s")], {"s": {"delivery": "often"}}, "delivery"),
        ([http("s"), http("s")], {}, "twice"),
    ],
)
async def test_bad_servers_are_the_hosts_fault(
    servers: list[Json], options: Json, words: str
) -> None:
    async with McpProxy(lambda event: None) as proxy:
        with pytest.raises(BridgeError, match=words) as caught:
            proxy.mount("a", servers, options)
    assert (caught.value.code, caught.value.origin) == ("invalid_request", "host")


async def test_the_host_calls_tools_by_their_full_names() -> None:
    events: list[Json] = []
    async with Fake().running() as server, McpProxy(events.append) as proxy:
        proxy.mount("a", [http("s", server.url)])
        result = codec.decode(await proxy.call_tool("a", "s_echo", None))
        assert result == {"content": [{"type": "text", "text": "ok"}]}
        with pytest.raises(RequestFailed) as caught:
            await proxy.call_tool("a", "s_nothing", {})
        assert caught.value.code == -32602
        with pytest.raises(BridgeError, match="'b'"):
            await proxy.list_tools("b")
    assert [event["session"] for event in events] == ["a"]


async def test_the_call_and_its_answer_can_be_seen() -> None:
    seen: list[tuple[str, Json]] = []

    def tap(direction: str, message: bytes) -> None:
        seen.append((direction, json.loads(message)))

    server = Fake(eras=("legacy",))
    async with server.running(), McpProxy(lambda event: None, tap=tap) as proxy:
        proxy.mount("a", [http("s", server.url)], {"s": {"backoff": {"initial": 0}}})
        await proxy.list_tools("a")
        server.acts["tools/call"] = [fake.closes]
        await proxy.call_tool("a", "s_echo", {"x": 1})
    assert [direction for direction, _ in seen] == ["out", "out", "in"]
    assert seen[0][1]["params"]["arguments"] == {"x": 1}
    assert seen[2][1] == {"jsonrpc": "2.0", "id": seen[1][1]["id"], "result": OK}


async def test_leaving_ends_calls_and_takes_leave_of_servers() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        async with McpProxy(lambda event: None) as proxy, anyio.create_task_group() as tasks:
            proxy.mount("a", [http("s", server.url)])
            await proxy.list_tools("a")
            server.acts["tools/call"] = [fake.hangs]
            tasks.start_soon(proxy.call_tool, "a", "s_echo", {})
            await server.until(lambda: bool(server.steps("tools/call")))
            tasks.cancel_scope.cancel()
        await server.until(lambda: len(server.opened) == len(server.ended))
        await server.until(lambda: server.connections == 0)
        assert len(server.steps("notifications/cancelled")) == 1


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_forgotten_sessions_calls_end_those_of_the_host_too(era: str) -> None:
    async with Fake(eras=(era,)).running() as server, McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [http("s", server.url)])
        await proxy.list_tools("a")
        server.acts["tools/call"] = [fake.hangs]

        async def forget() -> None:
            await server.until(lambda: bool(server.steps("tools/call")))
            proxy.forget("a")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(forget)
            result = codec.decode(await proxy.call_tool("a", "s_echo", {}))
    assert outcome(result) == "cancelled"
    assert "its session was closed" in result["content"][0]["text"]


async def test_mounting_anew_ends_no_call_of_the_host() -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [http("s", server.url)])
        await proxy.list_tools("a")
        mounted = anyio.Event()

        async def waits(_: Fake, peer: Peer, seen: Seen) -> None:
            proxy.mount("a", [http("s", server.url)])
            mounted.set()
            await server.behave(peer, seen)

        server.acts["tools/call"] = [waits]
        result = codec.decode(await proxy.call_tool("a", "s_echo", {}))
    assert mounted.is_set()
    assert result == OK


async def test_a_forgotten_sessions_tunnels_end() -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        (given,) = proxy.mount("a", [http("s", server.url)], http=False)
        place = given["env"][0]["value"]
        authority, _, path = place.partition("/")
        host, _, port = authority.rpartition(":")
        async with await anyio.connect_tcp(host, int(port)) as stream:
            head = f"GET /{path} HTTP/1.1\r\nHost: {authority}\r\n"
            await stream.send(f"{head}Connection: Upgrade\r\nUpgrade: mcp-lines\r\n\r\n".encode())
            assert b"101" in await stream.receive()
            proxy.forget("a")
            with pytest.raises(anyio.EndOfStream):
                await stream.receive()
