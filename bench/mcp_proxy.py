"""`python -m bench.mcp_proxy [--rounds N]`: a tool call through the MCP proxy, side by side.

One echo server (the mcp package's), called by the mcp package's client: directly with a fresh
session a call, through our proxy, and through FastMCP's. Rounds alternate, so that what else the
machine does falls on all alike; medians and the bars they must stay under are shown, and the exit
code is 3 if one does not. Then: memory over 5 000 calls, and sixteen calls of half a second each.
"""

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import anyio

from bench.bars import verdict

ROOT = Path(__file__).parents[1]
FASTMCP = ROOT / ".peers/fastmcp/bin/python"
BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
ERAS = ("legacy", "modern")
CLIENTS = 16
Call = Callable[[], Awaitable[Any]]


def echo_server(port: int) -> None:
    """The server that everything is measured on: one tool that echoes, one that waits."""
    import mcp_types as t
    import uvicorn
    from mcp.server.lowlevel import Server

    schema: dict[str, Any] = {"type": "object"}
    tools = [t.Tool(name=name, input_schema=schema) for name in ("echo", "wait")]

    async def list_tools(context: Any, params: Any) -> Any:
        return t.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: Any) -> Any:
        if params.name == "wait":
            await anyio.sleep(0.5)
        return t.CallToolResult(content=[t.TextContent(text=params.arguments["text"])])

    server = Server(
        "echo",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda name: schema,
    )
    app = server.streamable_http_app()
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical")


@contextlib.contextmanager
def listening(port: int, *command: str) -> Generator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            if time.monotonic() > deadline:
                sys.exit(f"bench: {command} does not listen")
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def bridge(url: str) -> Generator[tuple[str, subprocess.Popen[bytes]]]:
    """Our proxy: its URL, and its process."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "servers.json"
        file.write_text(json.dumps({"mcpServers": {"": {"url": url}}}))
        process = subprocess.Popen(
            [BRIDGE, "mcp", "--servers", str(file)], stdout=subprocess.PIPE, cwd=ROOT
        )
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["servers"][""], process
        finally:
            process.terminate()
            process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


# -- clients ------------------------------------------------------------------------------------


class Clients:
    """The mcp package's client, on one pool of connections, as a well-made agent has it."""

    def __init__(self) -> None:
        import httpx2
        import mcp_types as t
        from pydantic import TypeAdapter

        limits = httpx2.Limits(max_connections=64, max_keepalive_connections=64)
        self.http = httpx2.AsyncClient(trust_env=False, limits=limits, timeout=60)
        self.types = t
        self.result = TypeAdapter(t.CallToolResult | t.InputRequiredResult)

    @contextlib.asynccontextmanager
    async def session(self, url: str, era: str, *, known: bool = False) -> AsyncGenerator[Any]:
        """A session; `known`: the server's era needs no asking any more."""
        from mcp.client.client import _synthesize_discover  # pyright: ignore
        from mcp.client.session import ClientSession
        from mcp.client.streamable_http import streamable_http_client

        async with (
            streamable_http_client(url, http_client=self.http) as (reader, writer),
            ClientSession(reader, writer) as session,
        ):
            if era == "legacy":
                await session.initialize()
            elif known:
                session.adopt(_synthesize_discover("2026-07-28"))
            else:
                await session.discover()
            yield session

    async def echo(self, session: Any, name: str = "echo") -> None:
        params = self.types.CallToolRequestParams(name=name, arguments={"text": "hello"})
        request = self.types.CallToolRequest(params=params)
        result = await session.send_request(request, self.result)
        if result.content[0].text != "hello":
            raise ValueError(result)

    @contextlib.asynccontextmanager
    async def persistent(self, url: str, era: str) -> AsyncGenerator[Call]:
        async with self.session(url, era) as session:
            yield lambda: self.echo(session)

    @contextlib.asynccontextmanager
    async def fresh(self, url: str, era: str) -> AsyncGenerator[Call]:
        async def call() -> None:
            async with self.session(url, era, known=True) as session:
                await self.echo(session)

        yield call


async def timed(call: Call, count: int, clients: int) -> tuple[list[float], float]:
    """Each call's milliseconds, and calls a second."""
    times: list[float] = []
    rest = iter(range(count))

    async def client() -> None:
        for _ in rest:
            began = time.perf_counter()
            await call()
            times.append((time.perf_counter() - began) * 1e3)

    began = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(clients):
            tasks.start_soon(client)
    return times, count / (time.perf_counter() - began)


async def measure(urls: dict[str, str], rounds: int, calls: int) -> dict[str, dict[str, float]]:
    clients = Clients()
    single: dict[str, list[float]] = defaultdict(list)
    many: dict[str, list[float]] = defaultdict(list)
    for number in range(rounds + 1):
        for era in ERAS:
            for name, url in urls.items():
                way = clients.fresh if name == "direct, fresh session" else clients.persistent
                key = f"{era}: {name}"
                async with way(url, era) as call:
                    await timed(call, 5, 1)
                    times, _ = await timed(call, calls if number else 10, 1)
                    _, rate = await timed(call, calls * 3 if number else 32, CLIENTS)
                if number:
                    single[key] += times
                    many[key].append(rate)
    await clients.http.aclose()
    return {
        key: {
            "p50": statistics.median(times),
            "p99": statistics.quantiles(times, n=100)[98],
            "rate": statistics.median(many[key]),
        }
        for key, times in single.items()
    }


async def memory(url: str, process: subprocess.Popen[bytes], calls: int) -> list[float]:
    """The proxy's resident MiB after each fifth of the calls."""
    clients = Clients()
    found: list[float] = []
    async with clients.persistent(url, "legacy") as call:
        await timed(call, 200, 8)
        for _ in range(5):
            await timed(call, calls // 5, 8)
            found.append(resident(process.pid))
    await clients.http.aclose()
    return found


def resident(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


async def at_once(url: str) -> float:
    """Seconds for sixteen calls of half a second, made at once."""
    clients = Clients()
    async with clients.session(url, "legacy") as session:
        await clients.echo(session)
        began = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(16):
                tasks.start_soon(clients.echo, session, "wait")
        took = time.perf_counter() - began
    await clients.http.aclose()
    return took


def judge(found: dict[str, dict[str, float]]) -> bool:
    good = True
    for era, extra in (("legacy", 8), ("modern", 4)):
        direct, ours, theirs = (
            found[f"{era}: {name}"]
            for name in ("direct, fresh session", "acp-mcp-bridge", "FastMCP proxy")
        )
        print(f"{era} era")
        good &= verdict("p50 above a direct fresh call, ms", ours["p50"] - direct["p50"], extra)
        good &= verdict("p50 over that of FastMCP's proxy", ours["p50"] / theirs["p50"], 0.5)
        good &= verdict(
            f"calls/s over FastMCP's proxy, {CLIENTS} clients",
            ours["rate"] / theirs["rate"],
            5,
            least=True,
        )
    return good


def main() -> int:
    if sys.argv[1:2] == ["--echo"]:
        echo_server(int(sys.argv[2]))
        return 0
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--calls", type=int, default=60, help="a round, at one client")
    parser.add_argument("--memory-calls", type=int, default=5000)
    options = parser.parse_args()
    port, fast_port = free_port(), free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    script = str(ROOT / "tests/peers/fastmcp_server.py")
    with (
        listening(port, sys.executable, "-m", "bench.mcp_proxy", "--echo", str(port)),
        listening(fast_port, str(FASTMCP), script, "proxy", str(fast_port), url),
        bridge(url) as (ours, process),
    ):
        urls = {
            "direct, fresh session": url,
            "acp-mcp-bridge": ours,
            "FastMCP proxy": f"http://127.0.0.1:{fast_port}/mcp",
        }
        found = anyio.run(measure, urls, options.rounds, options.calls)
        print(f"{'':<32} {'p50 ms':>8} {'p99 ms':>8} {'calls/s, 16 clients':>20}")
        for name, figures in found.items():
            print(f"{name:<32} {figures['p50']:8.2f} {figures['p99']:8.1f} {figures['rate']:20.0f}")
        good = judge(found)
        took = anyio.run(at_once, ours)
        good &= verdict("16 calls of 0.5 s at once, s", took, 1.0)
        mib = anyio.run(memory, ours, process, options.memory_calls)
        print("MiB after each fifth of the calls:", *(f"{value:.1f}" for value in mib))
        good &= verdict("MiB grown over the last four fifths", mib[-1] - mib[0], 1.0)
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    return 0 if good else 3


if __name__ == "__main__":
    sys.exit(main())
