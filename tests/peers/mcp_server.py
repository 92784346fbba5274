"""A real MCP server for tests, on the mcp package: tools, and a log of every message it got.

    python -m tests.peers.mcp_server --log FILE [--name NAME] [--certificate FILE] [--refuse N]

It listens on a free loopback port, prints `{"url": ...}` and runs until it is ended. The log has
one JSON object a line: `method`, `params`, `headers`; for a call that was cancelled, `cancelled`.
"""

import argparse
import json
import socket
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import ToolAnnotations


def build(name: str, log: Path) -> MCPServer:
    """The server: tools echo, wait, fail, note (read-only) and count."""
    server = MCPServer(name, log_level="ERROR")

    def note(record: dict[str, Any]) -> None:
        with log.open("a") as file:
            file.write(json.dumps(record, default=str) + "\n")

    async def observe(context: Any, call_next: Any) -> Any:
        headers = dict(context.request.headers) if context.request is not None else {}
        params = dict(context.params or {})
        note({"method": context.method, "params": params, "headers": headers})
        try:
            return await call_next(context)
        except anyio.get_cancelled_exc_class():
            note({"cancelled": context.method, "params": params})
            raise

    server.middleware.append(observe)

    @server.tool(structured_output=False)
    async def echo(message: str) -> str:
        """Says the message again."""
        return f"echo: {message}"

    @server.tool(structured_output=False)
    async def wait(seconds: float) -> str:
        """Waits, then says so."""
        await anyio.sleep(seconds)
        return "waited"

    @server.tool(structured_output=False)
    async def fail(why: str) -> str:
        """Fails with the reason given."""
        raise ValueError(why)

    @server.tool(structured_output=False, annotations=ToolAnnotations(read_only_hint=True))
    async def note_of_the_day() -> str:
        """Reads the note of the day."""
        return "buy bread"

    @server.tool(structured_output=False)
    async def count(steps: int, pause: float, context: Context) -> str:
        """Counts, with a pause and a word of progress after each step."""
        for step in range(1, steps + 1):
            await anyio.sleep(pause)
            await context.report_progress(step, steps)
        return f"counted to {steps}"

    return server


class Refusing:
    """Answers the first calls of a tool with 503, before the server hears of them."""

    def __init__(self, app: Any, left: int) -> None:
        self.app, self.left = app, left

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if not self.left or scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        read = [await receive()]
        while read[-1].get("more_body"):
            read.append(await receive())
        if b'"tools/call"' in b"".join(message["body"] for message in read):
            self.left -= 1
            head = {"type": "http.response.start", "status": 503}
            await send(head | {"headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
            return

        async def again() -> Any:
            return read.pop(0) if read else await receive()

        await self.app(scope, again, send)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--name", default="tiny")
    parser.add_argument("--certificate", help="with its key: serve over TLS, as localhost")
    parser.add_argument("--refuse", type=int, default=0, help="that many calls, by 503")
    arguments = parser.parse_args()
    app = build(arguments.name, arguments.log).streamable_http_app()
    app = Refusing(app, arguments.refuse) if arguments.refuse else app
    listener = socket.create_server(("127.0.0.1", 0))
    where = "https://localhost" if arguments.certificate else "http://127.0.0.1"
    print(json.dumps({"url": f"{where}:{listener.getsockname()[1]}/mcp"}), flush=True)
    config = uvicorn.Config(app, log_level="error", ssl_certfile=arguments.certificate)
    await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    anyio.run(main)
