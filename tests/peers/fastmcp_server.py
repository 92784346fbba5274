"""A FastMCP server, run by FastMCP's own environment (.peers/fastmcp).

    python fastmcp_server.py serve PORT | proxy PORT UPSTREAM

`proxy` is FastMCP's own proxy, to be measured against.
"""

import sys

from fastmcp import Context, FastMCP
from fastmcp.server import create_proxy
from fastmcp.utilities.types import Image

server = FastMCP("fast")


@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool
def picture() -> Image:
    """One byte of a picture."""
    return Image(data=b"\x89PNG", format="png")


@server.tool
async def count(steps: int, ctx: Context) -> str:
    """Counts, and tells how far it is."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps)
    return f"counted to {steps}"


@server.resource("data://numbers")
def numbers() -> list[int]:
    """A resource."""
    return [1, 2, 3]


@server.resource("data://square/{n}")
def square(n: int) -> str:
    """A resource template."""
    return str(int(n) ** 2)


@server.prompt
def greet(name: str) -> str:
    """A prompt."""
    return f"Greet {name}."


if __name__ == "__main__":
    what, port = sys.argv[1], int(sys.argv[2])
    app = server if what == "serve" else create_proxy(sys.argv[3])
    app.run("http", host="127.0.0.1", port=port, show_banner=False, log_level="error")
