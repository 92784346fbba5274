"""Case 33: all pages of a tool list are there, though a cursor holds in one session only."""

import pytest

from bridge.mcp.service import McpProxy
from bridge.wire import codec
from tests.mcp.fake import Fake
from tests.mcp.test_catalogue import entry, pages, tools

pytestmark = pytest.mark.anyio


async def test_a_tool_of_the_second_page_can_be_called() -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        server.acts["tools/list"] = pages(
            {"tools": tools("a", "b", "c"), "nextCursor": "p2"}, {"tools": tools("d", "e")}
        )
        proxy.mount("", [entry("s", server)])
        listed = codec.decode(await proxy.list_tools(""))["tools"]
        assert [tool["name"] for tool in listed] == ["s_a", "s_b", "s_c", "s_d", "s_e"]
        assert codec.decode(await proxy.call_tool("", "s_e"))["content"]
    assert server.executed == {"e": 1}
