"""An endpoint's view: a lone server speaks for itself, several are presented as one."""

import pytest

from bridge.mcp.service import McpProxy
from bridge.mcp.view import View, renamed
from bridge.wire import codec
from bridge.wire.codec import Raw
from tests.mcp import fake
from tests.mcp.callers import QUICK, Silent, hub_of
from tests.mcp.fake import Fake
from tests.mcp.test_catalogue import entry, tools

pytestmark = pytest.mark.anyio

LEGACY = Silent().client


async def test_several_servers_are_presented_as_the_union_of_what_they_can() -> None:
    one = Fake(
        eras=("legacy",), capabilities={"tools": {}, "prompts": {}, "experimental": {"x": {}}}
    )
    two = Fake(
        eras=("legacy",),
        capabilities={
            "resources": {"subscribe": True},
            "prompts": {"listChanged": True},
            "tasks": {},
        },
    )
    async with one.running(), two.running(), McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [entry("one", one), entry("two", two)])
        every = View(hub_of(proxy))
        await every.met("legacy")
        assert every.capabilities("legacy") == {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "resources": {"subscribe": True},
        }
        assert every.presentation("legacy")["serverInfo"]["name"] == "acp-mcp-bridge"
        lone = View(hub_of(proxy), "one")
        assert lone.capabilities("legacy")["experimental"] == {"x": {}}
        said = codec.decode(lone.presentation("legacy")["serverInfo"])
        assert said == {"name": "fake", "version": "1"}


async def test_a_server_that_was_never_met_is_presented_by_its_name() -> None:
    async with McpProxy(lambda event: None) as proxy:
        down = {"type": "http", "name": "down", "url": "http://127.0.0.1:9/", "headers": []}
        proxy.mount("a", [down])
        lone = View(hub_of(proxy), "down")
        await lone.met("legacy")
        assert lone.presentation("legacy")["serverInfo"]["name"] == "down"
        assert lone.capabilities("legacy") == {"tools": {"listChanged": True}}


async def test_a_tool_of_a_server_that_cannot_be_listed_yet_is_waited_for() -> None:
    up, late = Fake(eras=("legacy",), tools=tools("x")), Fake(eras=("legacy",), tools=tools("y"))
    late.acts["initialize"] = [fake.says(503)] * 3
    async with up.running(), late.running(), McpProxy(lambda event: None) as proxy:
        servers = [entry("up", up), entry("late", late)]
        proxy.mount("a", servers, {"late": QUICK, "up": QUICK})
        view = View(hub_of(proxy))
        found = await view.find_tool("late_y", LEGACY)
        assert found is not None
        assert (found.server.name, found.name) == ("late", "y")
        # What no server's prefix fits is not waited for.
        listings = len(late.steps("tools/list"))
        assert await view.find_tool("nobodys", LEGACY) is None
        assert len(late.steps("tools/list")) == listings + 1


def test_a_tool_is_renamed_and_nothing_else() -> None:
    raw = Raw(b'{"description":"d","name":"x","n":1.0}')
    assert bytes(renamed(raw, "s_x")) == b'{"description":"d","name":"s_x","n":1.0}'
