"""The demo's MCP server: real, and failing exactly once."""

import anyio
import pytest

from bridge.demo.mcp_server import FailsOnce, Message
from bridge.demo.play import mcp_server
from bridge.io.process import Family
from bridge.mcp.service import McpProxy
from bridge.wire import codec

pytestmark = pytest.mark.anyio


async def test_the_first_call_fails_and_the_second_is_answered() -> None:
    attempts: list[dict[str, object]] = []
    async with mcp_server() as server, McpProxy(attempts.append, family=Family()) as proxy:
        entry = {"type": "http", "name": "notes", "url": await server.url(), "headers": []}
        proxy.mount("s", [entry], {"notes": {"backoff": {"initial": 0.01}}})
        result = codec.decode(await proxy.call_tool("s", "notes_read_note", {"name": "n"}))
    assert result["content"] == [{"type": "text", "text": "n: the answer is 42"}]
    assert [attempt["status"] for attempt in attempts] == [503, None]


async def test_what_is_no_call_goes_through_whole() -> None:
    seen: list[bytes] = []

    async def app(scope, receive, send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        seen.append(body)

    parts: list[Message] = [
        {"type": "http.request", "body": b'{"method":', "more_body": True},
        {"type": "http.request", "body": b'"tools/list"}', "more_body": False},
    ]

    async def receive() -> Message:
        await anyio.lowlevel.checkpoint()
        return parts.pop(0)

    async def send(message: Message) -> None:
        raise AssertionError(message)

    await FailsOnce(app)({"type": "http"}, receive, send)
    assert seen == [b'{"method":"tools/list"}']
