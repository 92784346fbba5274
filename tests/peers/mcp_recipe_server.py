"""A server whose tool is the recipe of docs/mcp-proxy.md, and that loses its first two answers.

    python -m tests.peers.mcp_recipe_server ROWS

Each insert is a line of the file ROWS. Prints `{"url": ...}` and runs until it is ended.
"""

import json
import re
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

PAGE = Path(__file__).parents[2] / "docs/mcp-proxy.md"
ROWS = Path(sys.argv[1])


def note(row: dict[str, Any]) -> None:
    with ROWS.open("a") as file:
        file.write(json.dumps(row) + "\n")


async def insert(text: str, key: str | None) -> str:
    note({"text": text, "key": key})
    return f"added {text}"


server = MCPServer("recipe", log_level="CRITICAL")
[recipe] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
exec(recipe, {"server": server, "Context": Context, "insert": insert})


class LosesAnswers:
    """Executes calls, and answers the first two of them with 502."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.left = 2

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or not self.left:
            await self.app(scope, receive, send)
            return
        request = await receive()
        if b'"tools/call"' not in request["body"]:
            replayed = iter([request])

            async def again() -> Any:
                return next(replayed, None) or await receive()

            await self.app(scope, again, send)
            return
        self.left -= 1
        once = iter([request])

        async def body() -> Any:
            return next(once, None) or await receive()

        async def swallow(message: Any) -> None:
            return

        await self.app(scope, body, swallow)
        await send({"type": "http.response.start", "status": 502, "headers": []})
        await send({"type": "http.response.body", "body": b"lost"})


def main() -> None:
    sock = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"url": f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"}), flush=True)
    app = LosesAnswers(server.streamable_http_app())
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[sock])


if __name__ == "__main__":
    main()
