"""Catalogues: all pages, in one session, in parallel; servers that are down and come up."""

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from bridge.errors import RequestFailed
from bridge.mcp import catalogue
from bridge.mcp.service import McpProxy
from bridge.mcp.settings import from_acp
from bridge.wire import codec
from tests.mcp import fake
from tests.mcp.callers import hub_of
from tests.mcp.fake import Act, Fake, Seen
from tests.mcp.test_relay import note, streams
from tests.mcp.web import Web
from tests.raw import Peer

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


def entry(name: str, server: Fake) -> Json:
    return {"type": "http", "name": name, "url": server.url, "headers": []}


def tools(*names: str) -> list[Json]:
    return [{"name": name, "inputSchema": {"type": "object"}} for name in names]


def pages(*found: Json) -> list[Act]:
    """One page a request. A cursor must be asked for in the session that gave it."""

    def page(result: Json, expected: Any) -> Act:
        async def run(server: Fake, peer: Peer, seen: Seen) -> None:
            assert seen.message.get("params", {}).get("cursor") == expected
            assert seen.headers.get("mcp-session-id") == server.opened[-1]
            await peer.send(fake.reply(200, fake.answer(seen.id, result)))

        return run

    cursors = [None, *(result.get("nextCursor") for result in found)]
    return [page(result, cursor) for result, cursor in zip(found, cursors, strict=False)]


async def names(proxy: McpProxy) -> list[str]:
    return [tool["name"] for tool in codec.decode(await proxy.list_tools("a"))["tools"]]


async def test_tools_are_relayed_whole_but_for_their_name() -> None:
    odd = {
        "description": "d",
        "name": "x",
        "inputSchema": {"$defs": {"d": {"$anchor": "a"}}, "n": 1.0},
        "x-vendor": [None],
        "_meta": {"k": 1},
    }
    server = Fake(eras=("legacy",), tools=[odd])
    async with server.running(), McpProxy(lambda event: None) as proxy:
        (given,) = proxy.mount("a", [entry("s", server)])
        listed = bytes(await proxy.list_tools("a"))
        web = Web(given["url"])
        await web.open()
        alone = await web.call("tools/list")
    assert json.loads(listed)["tools"] == [{**odd, "name": "s_x"}]
    assert b'"n":1.0' in listed.replace(b" ", b"")
    assert alone.result["tools"] == [odd]


async def test_a_server_named_nothing_has_its_tools_bare() -> None:
    async with Fake(tools=tools("x")).running() as server, McpProxy(lambda event: None) as proxy:
        (given,) = proxy.mount("a", [entry("", server)])
        assert given["url"].endswith("/mcp/_")
        assert await names(proxy) == ["x"]


async def test_two_tools_of_one_name_are_an_error_that_names_both_servers() -> None:
    first, second = Fake(tools=tools("b_c")), Fake(tools=tools("c"))
    async with first.running(), second.running(), McpProxy(lambda event: None) as proxy:
        one, _ = proxy.mount("x", [entry("a", first), entry("a_b", second)])
        with pytest.raises(RequestFailed, match=r"'a_b_c'.*'a'.*'a_b'"):
            await proxy.list_tools("x")
        # Each server's own names go on working.
        web = Web(one["url"])
        await web.open()
        assert (await web.call("tools/list")).result["tools"][0]["name"] == "b_c"


async def test_servers_are_listed_side_by_side() -> None:
    waiting = 0
    both = anyio.Event()

    async def meets(server: Fake, peer: Peer, seen: Seen) -> None:
        nonlocal waiting
        waiting += 1
        if waiting == 2:
            both.set()
        await both.wait()
        await server.behave(peer, seen)

    first, second = Fake(tools=tools("x")), Fake(tools=tools("y"))
    first.acts["tools/list"], second.acts["tools/list"] = [meets], [meets]
    async with first.running(), second.running(), McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [entry("one", first), entry("two", second)])
        assert await names(proxy) == ["one_x", "two_y"]


async def test_a_server_that_is_down_does_not_stop_the_others_and_is_found_when_it_is_up() -> None:
    up, down = Fake(tools=tools("x")), Fake(tools=tools("y"))
    async with down.running():
        port = down.port
    async with up.running(), McpProxy(lambda event: None) as proxy:
        _, second = proxy.mount("a", [entry("up", up), entry("down", down)])
        assert await names(proxy) == ["up_x"]
        web = Web(second["url"])
        await web.open()
        got = await web.call("tools/list")
        assert "'down'" in got.error["message"]
        assert "cannot connect" in got.error["message"]
        got = await web.call("tools/list")
        assert got.error
        async with web.streaming() as news, down.running(port):
            # It is found without being asked for, and whoever listens is told.
            assert (await news.event())["method"] == "notifications/tools/list_changed"
            assert await names(proxy) == ["up_x", "down_y"]


async def test_a_server_that_goes_down_keeps_the_names_it_had() -> None:
    events: list[Json] = []
    server = Fake(eras=("legacy",))
    async with McpProxy(events.append) as proxy:
        async with server.running():
            proxy.mount("a", [entry("s", server)], {"s": {"attempts": 1}})
            assert await names(proxy) == ["s_echo"]
        hub_of(proxy).catalogues["s"].spoil()
        result = codec.decode(await proxy.call_tool("a", "s_echo", {}))
        assert await names(proxy) == ["s_echo"]
    assert result["isError"] is True
    assert [event["outcome"] for event in events] == ["connect"]


@pytest.mark.parametrize("code", [-32601, -32000])
async def test_a_server_without_tools_is_told_from_one_that_fails(code: int) -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        server.acts["tools/list"] = [fake.refuses(code)] * 3
        (given,) = proxy.mount("a", [entry("s", server)])
        web = Web(given["url"])
        await web.open()
        got = await web.call("tools/list")
    if code == -32601:
        assert got.result == {"tools": []}
    else:
        assert "tools/list was refused" in got.error["message"]


async def changed_by_a_call(act: Callable[..., Act]) -> tuple[Json, list[str]]:
    """A server whose tools change while it is called, and says so on the call's stream."""
    server = Fake(eras=("legacy",))
    async with server.running(), McpProxy(lambda event: None) as proxy:
        (given,) = proxy.mount("a", [entry("s", server)])
        web = Web(given["url"])
        await web.open()
        await web.call("tools/list")

        async def changes(server: Fake, peer: Peer, seen: Seen) -> None:
            server.tools.append({"name": "more", "inputSchema": {}})
            await act()(server, peer, seen)

        server.acts["tools/call"] = [changes]
        async with web.streaming() as news:
            await web.call("tools/call", {"name": "echo"})
            told = await news.event()
        return told, await names(proxy)


async def test_a_list_that_changed_in_a_calls_stream_is_told_to_who_listens() -> None:
    changed = note("notifications/tools/list_changed", {})
    told, found = await changed_by_a_call(lambda: streams(changed))
    assert told == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    assert found == ["s_echo", "s_more"]


@pytest.mark.parametrize("kind", ["resources", "prompts"])
async def test_other_lists_that_changed_are_told_at_once(kind: str) -> None:
    changed = note(f"notifications/{kind}/list_changed", {})
    server = Fake(eras=("legacy",))
    async with server.running(), McpProxy(lambda event: None) as proxy:
        (given,) = proxy.mount("a", [entry("s", server)])
        web = Web(given["url"])
        await web.open()
        server.acts["tools/call"] = [streams(changed)]
        async with web.streaming() as news:
            await web.call("tools/call", {"name": "echo"})
            assert (await news.event())["method"] == changed["method"]


async def test_a_header_mismatch_has_the_tools_listed_again_and_the_call_made_again() -> None:
    tool = {"name": "echo", "inputSchema": {"properties": {"r": {"type": "string"}}}}
    server = Fake(eras=("modern",), tools=[tool])
    async with server.running(), McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [entry("s", server)], {"s": {"backoff": {"initial": 0}}})
        await names(proxy)

        async def changed(server: Fake, peer: Peer, seen: Seen) -> None:
            tool["inputSchema"]["properties"]["r"]["x-mcp-header"] = "Region"
            await peer.send(fake.reply(400, fake.error(seen.id, -32020)))

        server.acts["tools/call"] = [changed]
        result = codec.decode(await proxy.call_tool("a", "s_echo", {"r": "é"}))
    assert result["content"]
    first, second = server.steps("tools/call")
    assert "mcp-param-region" not in first.headers
    assert second.headers["mcp-param-region"] == "=?base64?w6k=?="
    assert (second.headers["mcp-method"], second.headers["mcp-name"]) == ("tools/call", "echo")


async def test_names_that_a_model_cannot_carry_are_shortened_on_request_and_lead_back() -> None:
    long = "very.long/" + "x" * 80
    server = Fake(tools=tools(long, "fine"))
    async with server.running(), McpProxy(lambda event: None) as proxy:
        proxy.mount_upstreams("a", from_acp([entry("s", server)], {}, {}), short_names=True)
        short, fine = await names(proxy)
        assert len(short) <= 64
        assert fine == "s_fine"
        await proxy.call_tool("a", short, {})
    assert server.executed == {long: 1}


async def test_a_server_may_have_other_tools_for_clients_that_can_be_asked() -> None:
    async def by_ability(server: Fake, peer: Peer, seen: Seen) -> None:
        opening = server.steps("initialize")[-1].message["params"]
        more = tools("ask") if "sampling" in opening["capabilities"] else []
        found = {"tools": [*tools("echo"), *more]}
        await peer.send(fake.reply(200, fake.answer(seen.id, found)))

    server = Fake(eras=("legacy",))
    async with server.running(), McpProxy(lambda event: None) as proxy:
        (given,) = proxy.mount("a", [entry("s", server)])
        server.acts["tools/list"] = [by_ability] * 2
        shy, able = Web(given["url"]), Web(given["url"])
        await shy.open()
        await able.open({"sampling": {}, "experimental": {"x": {}}})
        seen = {
            web: [tool["name"] for tool in (await web.call("tools/list")).result["tools"]]
            for web in (shy, able, shy, able)
        }
        assert (await able.call("tools/call", {"name": "ask"})).result["content"]
    assert seen == {shy: ["echo"], able: ["echo", "ask"]}
    assert len(server.steps("tools/list")) == 2


async def test_an_old_list_is_read_anew_where_somebody_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalogue, "OLDEST", 0.02)
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        (given,) = proxy.mount("a", [entry("s", server)])
        await hub_of(proxy).listed(20)
        web = Web(given["url"])
        await web.open()
        server.tools.append({"name": "more", "inputSchema": {}})
        async with web.streaming() as news:
            assert (await news.event())["method"] == "notifications/tools/list_changed"
