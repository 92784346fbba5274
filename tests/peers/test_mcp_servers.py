"""Real servers behind the proxy: what a client sees of them is what it sees without it."""

import contextlib
import os
import re
import warnings
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from tests.peers import mcp_peers
from tests.peers.mcp_peers import proxied

pytestmark = pytest.mark.peers

Json = dict[str, Any]
Calls = list[tuple[str, Json]]

EVERYTHING: Calls = [
    ("echo", {"message": "hé\u2028"}),
    ("get-sum", {"a": 1, "b": 2}),
    ("get-tiny-image", {}),
    ("get-structured-content", {"location": "New York"}),
    ("get-annotated-message", {"messageType": "success", "includeImage": True}),
    ("get-resource-reference", {}),
    ("get-resource-links", {"count": 3}),
    ("trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
    ("trigger-sampling-request", {"prompt": "x"}),
    ("trigger-elicitation-request", {}),
    ("get-roots-list", {}),
]
SERVERS: dict[str, tuple[Callable[[], Any], Calls]] = {
    "server-everything over HTTP": (mcp_peers.everything_http, EVERYTHING),
    "server-everything over SSE": (mcp_peers.everything_sse, EVERYTHING),
    "server-everything on stdio": (mcp_peers.everything_stdio, EVERYTHING[:9]),
    "server-filesystem": (
        mcp_peers.filesystem_stdio,
        [
            ("list_allowed_directories", {}),
            ("list_directory", {"path": "DIRECTORY"}),
            ("read_text_file", {"path": "DIRECTORY/note.txt"}),
            ("read_text_file", {"path": "/etc/passwd"}),
        ],
    ),
    "mcp": (
        mcp_peers.mcp_python,
        [
            *((name, {}) for name in ("test_image_content", "test_multiple_content_types")),
            *((name, {}) for name in ("test_error_handling", "test_tool_with_progress")),
            ("test_sampling", {"prompt": "x"}),
            ("test_elicitation", {"message": "?"}),
            ("test_input_required_result_multi_round", {}),
        ],
    ),
    "FastMCP": (
        mcp_peers.fastmcp,
        [("add", {"a": 1, "b": 2}), ("picture", {}), ("count", {"steps": 3}), ("add", {"a": "x"})],
    ),
}


@contextlib.asynccontextmanager
async def connected(target: Any, mode: str) -> Any:
    """The mcp package's client, able to be asked everything."""
    import mcp_types as t
    from mcp import Client

    async def elicit(context: Any, params: Any) -> Any:
        names = getattr(params, "requested_schema", {}).get("required", [])
        return t.ElicitResult(action="accept", content=dict.fromkeys(names, "yes"))

    async def sample(context: Any, params: Any) -> Any:
        return t.CreateMessageResult(
            role="assistant", content=t.TextContent(text="sampled"), model="m"
        )

    async def roots(context: Any) -> Any:
        return t.ListRootsResult(roots=[t.Root(uri="file:///r")])

    async with Client(
        target,
        mode=mode,
        elicitation_callback=elicit,
        sampling_callback=sample,
        list_roots_callback=roots,
    ) as client:
        yield client


async def seen(target: Any, mode: str, calls: Calls) -> Json:
    """What a client sees of a server."""
    found: Json = {}
    async with connected(target, mode) as client:
        for name in ("tools", "resources", "resource_templates", "prompts"):
            found[name] = await outcome(getattr(client, f"list_{name}"))
        for uri in (
            "demo://resource/static/document/features.md",
            "test://static-binary",
            "data://square/7",
        ):
            found[uri] = await outcome(client.read_resource, uri)
        for prompt, arguments in (("greet", {"name": "x"}), ("test_simple_prompt", None)):
            found[prompt] = await outcome(client.get_prompt, prompt, arguments)
        for name, arguments in calls:
            told: list[Any] = []

            async def progress(value: float, total: Any, message: Any, told: Any = told) -> None:
                told.append((value, total, message))

            key = f"{name} {arguments}"
            found[key] = await outcome(
                client.call_tool, name, arguments, progress_callback=progress
            )
            found[f"{key} progress"] = sorted(told)
    return found


async def outcome(request: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """A result as JSON, or the error; times of day left out, since they pass."""
    try:
        with anyio.fail_after(60):
            result = (await request(*arguments, **options)).model_dump(mode="json", by_alias=True)
    except Exception as error:  # noqa: BLE001 - an error is to be the same error
        return f"{type(error).__name__} {getattr(error, 'code', '')}"
    for name in ("ttlMs", "cacheScope", "_meta"):
        result.pop(name, None)
    return re.sub(r"\d+:\d\d:\d\d ?[AP]?M?", "TIME", repr(result))


def direct(entry: Json) -> Any:
    """How the client reaches the server itself."""
    if "command" in entry:
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client

        environment = {"PATH": os.environ["PATH"]}
        return stdio_client(
            StdioServerParameters(command=entry["command"], args=entry["args"], env=environment),
            errlog=open(os.devnull, "w"),
        )
    if entry.get("type") == "sse":
        from mcp.client.sse import sse_client

        return sse_client(entry["url"])
    return entry["url"]


def with_directory(calls: Calls, entry: Json) -> Calls:
    """The calls with DIRECTORY replaced by the one a filesystem server serves."""
    directory = entry.get("args", [""])[-1]
    return [
        (
            name,
            {
                k: v.replace("DIRECTORY", directory) if isinstance(v, str) else v
                for k, v in given.items()
            },
        )
        for name, given in calls
    ]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("name", SERVERS)
def test_a_real_server_looks_the_same_through_the_proxy(name: str, mode: str) -> None:
    warnings.simplefilter("ignore")
    start, calls = SERVERS[name]
    with start() as entry, proxied({"peer": entry}) as ready:
        calls = with_directory(calls, entry)
        expected = anyio.run(seen, direct(entry), mode, calls)
        found = anyio.run(seen, ready["servers"]["peer"], mode, calls)
    assert found == expected
    assert "TimeoutError" not in repr(found)


def test_several_real_servers_are_one() -> None:
    with (
        mcp_peers.everything_stdio() as everything,
        mcp_peers.fastmcp() as fast,
        mcp_peers.mcp_python() as conforming,
        proxied({"every": everything, "fast": fast, "": conforming}) as ready,
    ):

        async def look() -> tuple[list[str], list[str], str, str]:
            async with connected(ready["url"], "legacy") as client:
                tools = [tool.name for tool in (await client.list_tools()).tools]
                prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
                read = (await client.read_resource("data://square/7")).contents[0].text
                greeting = (await client.get_prompt("fast_greet", {"name": "x"})).messages[0]
                return tools, prompts, read, greeting.content.text

        tools, prompts, read, greeting = anyio.run(look)
    assert {"every_echo", "fast_add", "test_simple_text"} <= set(tools)
    assert {"fast_greet", "test_simple_prompt"} <= set(prompts)
    assert (read, greeting) == ("49", "Greet x.")
