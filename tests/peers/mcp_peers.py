"""Real MCP servers on loopback, and the proxy in front of them."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.peers.node_agents import node_bin

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".peers"
MODULES = PEERS / "node-mcp/node_modules"
FASTMCP = PEERS / "fastmcp/bin/python"
BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
EVERYTHING = str(MODULES / "@modelcontextprotocol/server-everything/dist/index.js")
FILESYSTEM = str(MODULES / "@modelcontextprotocol/server-filesystem/dist/index.js")
HERE = Path(__file__).parent


def node() -> str:
    return str(Path(node_bin()) / "node") if node_bin() else "node"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


@contextlib.contextmanager
def listening(command: list[str], port: int, **environment: str) -> Iterator[None]:
    """A server process, once it accepts connections."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, f"{command} ended with {process.returncode}"
                assert time.monotonic() < deadline, f"{command} does not listen"
                time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def proxied(servers: Json, *arguments: str) -> Iterator[Json]:
    """The proxy's ready line for these servers."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "servers.json"
        file.write_text(json.dumps({"mcpServers": servers}))
        process = subprocess.Popen(
            [BRIDGE, "mcp", "--servers", str(file), *arguments], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def everything_http() -> Iterator[Json]:
    port = free_port()
    with listening([node(), EVERYTHING, "streamableHttp"], port, PORT=str(port)):
        yield {"url": f"http://127.0.0.1:{port}/mcp"}


@contextlib.contextmanager
def everything_sse() -> Iterator[Json]:
    port = free_port()
    with listening([node(), EVERYTHING, "sse"], port, PORT=str(port)):
        yield {"type": "sse", "url": f"http://127.0.0.1:{port}/sse"}


@contextlib.contextmanager
def everything_stdio() -> Iterator[Json]:
    yield {"command": node(), "args": [EVERYTHING, "stdio"]}


@contextlib.contextmanager
def filesystem_stdio() -> Iterator[Json]:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "note.txt").write_text("buy bread\n")
        yield {"command": node(), "args": [FILESYSTEM, os.path.realpath(directory)]}


@contextlib.contextmanager
def module(name: str, *arguments: str) -> Iterator[Json]:
    """A server that is a module of ours and prints where it is."""
    command = [sys.executable, "-m", name, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            yield {"url": json.loads(process.stdout.readline())["url"]}
        finally:
            process.terminate()


def mcp_python() -> contextlib.AbstractContextManager[Json]:
    return module("tests.peers.conformance.server")


@contextlib.contextmanager
def fastmcp() -> Iterator[Json]:
    port = free_port()
    with listening([str(FASTMCP), str(HERE / "fastmcp_server.py"), "serve", str(port)], port):
        yield {"url": f"http://127.0.0.1:{port}/mcp"}
