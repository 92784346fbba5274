"""Case 35: as many farewells as sessions, whatever became of the calls; nothing stays open."""

import os

import pytest

from bridge.mcp.service import McpProxy
from tests.mcp import fake
from tests.mcp.callers import QUICK
from tests.mcp.fake import Fake
from tests.mcp.test_catalogue import entry

pytestmark = pytest.mark.anyio


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_fifty_calls_of_which_ten_fail_once_leave_nothing_behind() -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        proxy.mount("", [entry("s", server)], {"s": QUICK})
        await proxy.call_tool("", "s_echo")
        before = descriptors()
        for number in range(50):
            if number % 5 == 0:
                server.acts["tools/call"] = [fake.closes if number % 2 else fake.says(500)]
            await proxy.call_tool("", "s_echo")
        await server.until(lambda: len(server.opened) == len(server.ended))
        assert sorted(server.ended) == sorted(server.opened)
        assert len(server.opened) == 1 + 1 + 50 + 10
        # Connections are kept for the next call, not one a session.
        assert descriptors() <= before + 4
        proxy.forget("")
        await server.until(lambda: server.connections == 0)
