"""The client that the official runner's client scenarios drive: an agent, through the proxy or not.

    python -m tests.peers.conformance.client [--proxy] URL

The runner appends the URL of its mock server and names the scenario in the environment.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import anyio
import mcp_types as t
from mcp import Client

Json = dict[str, Any]
BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
CONTEXT: Json = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
STAND_INS: Json = {
    "string": "x",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "object": {},
    "array": [],
}


async def elicit(context: Any, params: Any) -> t.ElicitResult:
    """Accepts with the defaults, or with something of the right type where there are none."""
    properties: Json = (getattr(params, "requested_schema", None) or {}).get("properties", {})
    content = {name: found["default"] for name, found in properties.items() if "default" in found}
    if not content:
        content = {
            name: "yes" if found.get("type") == "string" else True
            for name, found in properties.items()
        }
    return t.ElicitResult(action="accept", content=content)


async def sample(context: Any, params: Any) -> t.CreateMessageResult:
    return t.CreateMessageResult(role="assistant", content=t.TextContent(text=""), model="m")


async def roots(context: Any) -> t.ListRootsResult:
    return t.ListRootsResult(roots=[])


@contextlib.contextmanager
def proxied(url: str) -> Generator[str]:
    """The same server's URL at a proxy of its own."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "servers.json"
        file.write_text(json.dumps({"mcpServers": {"mock": {"url": url}}}))
        process = subprocess.Popen(
            [BRIDGE, "mcp", "--servers", str(file)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["servers"]["mock"]
        finally:
            process.terminate()
            process.wait()


async def attempt(request: Callable[..., Awaitable[Any]], *arguments: Any) -> None:
    try:
        await request(*arguments)
    except Exception as error:  # noqa: BLE001 - whether it fails is for the runner to judge
        print(f"{request.__name__} {arguments}: {error!r}", file=sys.stderr)


async def drive(url: str) -> None:
    """What an agent would do in the scenario."""
    legacy = VERSION and VERSION < "2026"
    callbacks: Json = {"elicitation_callback": elicit}
    if SCENARIO == "request-metadata":
        callbacks |= {"sampling_callback": sample, "list_roots_callback": roots}
    async with Client(url, mode="legacy" if legacy else "auto", **callbacks) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for call in CONTEXT.get("toolCalls", []):
            await attempt(client.call_tool, call["name"], call.get("arguments"))
        if "add_numbers" in tools:
            await attempt(client.call_tool, "add_numbers", {"a": 5, "b": 3})
        if SCENARIO == "sse-retry":
            await attempt(client.call_tool, "test_reconnection", {})
        if SCENARIO.startswith("elicitation"):
            await attempt(client.call_tool, "test_client_elicitation_defaults", {})
        if "json_schema_echo" in tools:
            schema = tools["json_schema_2020_12_tool"].input_schema
            await attempt(client.call_tool, "json_schema_echo", {"schema": schema})
        if SCENARIO == "http-standard-headers":
            await attempt(client.call_tool, next(iter(tools), "test_headers"), {})
            await attempt(client.list_resources)
            await attempt(client.read_resource, "file:///path/to/file.txt")
            await attempt(client.list_prompts)
            await attempt(client.get_prompt, "test_prompt")
        if SCENARIO in ("http-invalid-tool-headers", "sep-2322-client-request-state"):
            for tool in tools.values():
                properties = tool.input_schema.get("properties", {})
                arguments = {
                    name: STAND_INS.get(properties.get(name, {}).get("type"), "x")
                    for name in tool.input_schema.get("required", [])
                }
                await attempt(client.call_tool, tool.name, arguments)


def main() -> None:
    warnings.simplefilter("ignore")
    url = sys.argv[-1]
    with proxied(url) if "--proxy" in sys.argv else contextlib.nullcontext(url) as target:
        anyio.run(drive, target)


if __name__ == "__main__":
    main()
