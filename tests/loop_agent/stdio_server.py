"""A real MCP server on stdio for tests, on the mcp package.

Tools: `add`, `where` (its cwd and what it was given as SECRET), `die` (exits 9 with words on
stderr), `picture` (text and an image), `spawn` (starts a process that outlives it).
"""

import os
import subprocess
import sys

from mcp.server import MCPServer
from mcp_types import CallToolResult, ImageContent, TextContent

server = MCPServer("stdio", log_level="ERROR")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@server.tool()
def where() -> str:
    return f"{os.getcwd()} {os.environ.get('SECRET')} {os.environ.get('OPENAI_API_KEY')}"


@server.tool()
def die() -> str:
    print("dying as asked", file=sys.stderr, flush=True)
    os._exit(9)


@server.tool()
def picture() -> CallToolResult:
    image = ImageContent(type="image", data="aGk=", mime_type="image/png")
    return CallToolResult(content=[TextContent(type="text", text="look"), image])


@server.tool()
def spawn() -> int:
    return subprocess.Popen(["sleep", "600"], start_new_session=True).pid


if __name__ == "__main__":
    server.run("stdio")
