"""The recipe for tool authors, as docs/mcp-proxy.md has it: called three times, executed once."""

import json
from pathlib import Path

import pytest

from bridge.mcp.service import McpProxy
from bridge.wire import codec
from tests.peers.mcp_peers import module

pytestmark = [pytest.mark.peers, pytest.mark.anyio]


async def test_a_tool_that_keeps_the_key_executes_once(tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    events: list[dict[str, object]] = []
    with module("tests.peers.mcp_recipe_server", str(rows)) as server:
        async with McpProxy(events.append) as proxy:
            entry = {"type": "http", "name": "s", "url": server["url"], "headers": []}
            proxy.mount("a", [entry], {"s": {"backoff": {"initial": 0.01}}})
            results = [
                codec.decode(await proxy.call_tool("a", "s_add_row", {"text": text}))
                for text in ("one", "two")
            ]
    assert [result["content"][0]["text"] for result in results] == ["added one", "added two"]
    assert [event["outcome"] for event in events] == ["lost", "lost", "answer", "answer"]
    inserted = [json.loads(row) for row in rows.read_text().splitlines()]
    assert [row["text"] for row in inserted] == ["one", "two"]
    assert len({row["key"] for row in inserted}) == 2
