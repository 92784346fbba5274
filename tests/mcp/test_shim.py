"""The shim: an agent's stdio server that is only a pipe to the proxy."""

import json
import os
import subprocess
import sys
from typing import Any

import anyio.to_thread
import pytest

from bridge.mcp import shim
from bridge.mcp.service import McpProxy
from bridge.wire import codec
from tests.mcp.fake import Fake
from tests.mcp.test_service import http

Json = dict[str, Any]


async def shimmed(entry: Json, text: bytes) -> subprocess.CompletedProcess[bytes]:
    """Runs a shim entry with this input, to its end."""
    env = {**os.environ, **{pair["name"]: pair["value"] for pair in entry["env"]}}

    def run() -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [entry["command"], *entry["args"]], input=text, env=env, capture_output=True, timeout=20
        )

    return await anyio.to_thread.run_sync(run)


INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}


@pytest.mark.anyio
async def test_an_agent_without_http_gets_a_shim_that_speaks_stdio() -> None:
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo"}},
    ]
    server = Fake(eras=("legacy",))
    async with server.running(), McpProxy(lambda event: None) as proxy:
        (entry,) = proxy.mount("a", [http("s", server.url)], http=False)
        assert set(entry) == {"name", "command", "args", "env"}
        assert entry["command"] == sys.executable
        # The path is secret, and arguments are not.
        token = entry["env"][0]["value"].split("/")[1]
        assert token not in repr(entry["args"])
        text = b"".join(codec.encode(message) + b"\n" for message in messages)
        done = await shimmed(entry, text)
    assert done.returncode == 0, done.stderr
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["result"]["serverInfo"] == {"name": "fake", "version": "1"}
    assert second["result"]["content"] == [{"type": "text", "text": "ok"}]
    assert server.executed == {"echo": 1}


@pytest.mark.anyio
async def test_a_shim_without_its_proxy_says_so() -> None:
    async with McpProxy(lambda event: None) as proxy:
        (entry,) = proxy.mount("a", [http("s")], http=False)
    done = await shimmed(entry, b"")
    assert done.returncode == 1
    assert b"shim" in done.stderr


def test_the_shim_loads_nothing_that_is_slow_to_load() -> None:
    code = f"import runpy, sys; runpy.run_path({shim.__file__!r}); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert "_socket" in loaded
    assert not loaded & {
        "asyncio",
        "anyio",
        "json",
        "ssl",
        "http",
        "http.client",
        "urllib",
        "email",
    }
