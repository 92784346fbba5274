"""Connections to servers that are not there or not right; words for what failed."""

import sys

import anyio
import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from bridge.io.family import Family
from bridge.loop_agent.mcp_link import Link, LinkFailed, words
from bridge.loop_agent.mcp_stdio import ServerEnded
from protocol_schemas.agent_requests import McpServer

pytestmark = pytest.mark.anyio


def link(server: McpServer) -> Link:
    return Link(server, "/tmp", Family())


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_refused_connection_is_named_without_secrets(kind: str) -> None:
    url = "http://user:pass@127.0.0.1:1/mcp?token=secret"
    async with anyio.create_task_group() as group:
        ours = link(McpServer(name="x", type=kind, url=url))
        with pytest.raises(LinkFailed) as caught:
            await ours.open(group)
    assert "http://127.0.0.1:1/mcp: ConnectError" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "pass" not in str(caught.value)


async def test_a_link_that_is_closed_says_so_and_can_be_closed_again() -> None:
    async with anyio.create_task_group() as group:
        ours = link(McpServer(name="x", command=sys.executable, args=["-c", "1/0"]))
        with pytest.raises(LinkFailed, match="ZeroDivisionError"):
            await ours.open(group)
        await ours.close(1)
        with pytest.raises(LinkFailed):
            await ours.call("x", {})


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("a\nb"), "ValueError: a b"),
        (
            BaseExceptionGroup(
                "g",
                [
                    anyio.ClosedResourceError(),
                    ExceptionGroup("h", [MCPError(1, "m"), httpx2.ConnectError("no")]),
                ],
            ),
            "ConnectError: no",
        ),
        (ExceptionGroup("g", [MCPError(1, "m"), ServerEnded("it ended")]), "it ended"),
    ],
)
def test_the_cause_that_says_most_is_chosen(error: BaseException, said: str) -> None:
    assert words(error) == said
