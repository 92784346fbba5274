"""Lists in pages: all of them, in one session, and an end to every list."""

from typing import Any

import pytest

from bridge.mcp.service import McpProxy
from bridge.wire import codec
from tests.mcp import fake
from tests.mcp.fake import Fake
from tests.mcp.test_catalogue import entry, names, pages, tools

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


async def test_all_pages_of_a_list_are_read_in_one_session() -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        server.acts["tools/list"] = pages(
            {"tools": tools("a", "b", "c"), "nextCursor": "p2"}, {"tools": tools("d", "e")}
        )
        proxy.mount("a", [entry("s", server)])
        assert await names(proxy) == ["s_a", "s_b", "s_c", "s_d", "s_e"]
        assert len(server.opened) == 1
        result = codec.decode(await proxy.call_tool("a", "s_e", {}))
    assert result["content"]
    assert server.executed == {"e": 1}


async def test_a_cursor_that_comes_again_ends_the_list() -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        server.acts["tools/list"] = pages(
            {"tools": tools("a"), "nextCursor": "p"},
            {"tools": tools("b"), "nextCursor": "q"},
            {"tools": tools("c"), "nextCursor": "p"},
        )
        proxy.mount("a", [entry("s", server)])
        assert await names(proxy) == ["s_a", "s_b", "s_c"]
    assert len(server.steps("tools/list")) == 3


async def test_an_empty_cursor_ends_the_list() -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        server.acts["tools/list"] = pages(
            {"tools": tools("a"), "nextCursor": "p"}, {"tools": tools("b"), "nextCursor": ""}
        )
        proxy.mount("a", [entry("s", server)])
        assert await names(proxy) == ["s_a", "s_b"]
    assert len(server.steps("tools/list")) == 2


@pytest.mark.parametrize("odd", [{"tools": None}, {}, {"tools": [], "nextCursor": None}])
async def test_a_list_that_is_not_there_is_empty(odd: Json) -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        server.acts["tools/list"] = pages(odd)
        proxy.mount("a", [entry("s", server)])
        assert await names(proxy) == []


@pytest.mark.parametrize("odd", [{"tools": 3}, {"tools": {"a": 1}}, [], None])
async def test_a_list_that_is_none_is_a_failure_to_list(odd: Any) -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        server.acts["tools/list"] = pages({"tools": tools("a"), "nextCursor": "n"})
        if odd is not None:
            server.acts["tools/list"] += [
                lambda server, peer, seen: peer.send(fake.reply(200, fake.answer(seen.id, odd)))
            ]
        else:
            server.acts["tools/list"] += [fake.refuses(-32603)]
        proxy.mount("a", [entry("s", server)], {"s": {"attempts": 1}})
        listed = codec.decode(await proxy.list_tools("a"))
    # Half a list is none: the other half may be what is needed.
    assert listed == {"tools": []} or [tool["name"] for tool in listed["tools"]] == ["s_a"]
