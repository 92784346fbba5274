"""The demo's MCP server: the mcp package's own, over HTTP, whose first tool call fails.

    python -m bridge.demo.mcp_server        prints {"url": ...} and runs until its stdin ends

A 503 for the call, as a server gives that is being restarted: what the proxy is there for.
"""

import os
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from bridge.wire import codec

if TYPE_CHECKING:
    from mcp.server import MCPServer

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]


def build() -> "MCPServer":
    """A server with one tool."""
    from mcp.server import MCPServer

    server = MCPServer("notes", log_level="ERROR")

    def read_note(name: str) -> str:
        """Reads a note."""
        return f"{name}: the answer is 42"

    server.add_tool(read_note, structured_output=False)
    return server


class FailsOnce:
    """An ASGI app in front of another: the first tools/call is answered 503."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._failed = False

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._failed:
            await self._app(scope, receive, send)
            return
        held: list[Message] = []
        while not held or held[-1].get("more_body"):
            held.append(await receive())
        if b'"tools/call"' in b"".join(message.get("body", b"") for message in held):
            self._failed = True
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b"restarting"})
            return

        async def replay() -> Message:
            return held.pop(0) if held else await receive()

        await self._app(scope, replay, send)


async def main() -> None:
    """Serves until stdin ends, so that it cannot outlive whoever started it."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    sys.stdout.write(codec.encode({"url": url}).decode() + "\n")
    sys.stdout.flush()
    # Only now: who connects meanwhile waits in the listener, and is getting ready as well.
    import uvicorn

    app = FailsOnce(build().streamable_http_app())
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))

    async def watch() -> None:
        await anyio.to_thread.run_sync(sys.stdin.read)
        # Whoever it was for is gone: there is nobody to say goodbye to.
        os._exit(0)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        await server.serve([listener])


if __name__ == "__main__":
    anyio.run(main)
