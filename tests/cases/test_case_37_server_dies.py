"""Case 37: a stdio server that dies, in a call or at start, is named with code and last words."""

import os
from pathlib import Path

import pytest

from bridge.mcp.service import McpProxy
from bridge.wire import codec
from tests.mcp.callers import QUICK, one_call
from tests.mcp.test_stdio_channel import Lines

pytestmark = pytest.mark.anyio


def children() -> set[int]:
    """Processes whose parent is this one, zombies too."""
    found: set[int] = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                stat = Path(f"/proc/{name}/stat").read_text()
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(name))
    return found


@pytest.mark.parametrize(
    "mode, code, words",
    [("die", "exit code 9", "out of memory"), ("refuse", "exit code 1", "set FOO")],
)
async def test_its_end_is_told_and_no_zombie_is_left(
    tmp_path: Path, mode: str, code: str, words: str
) -> None:
    lines = Lines(tmp_path, mode)
    before = children()
    async with McpProxy(lines.events.append) as proxy:
        proxy.mount("a", [lines.entry], {"s": {**QUICK, "delivery": "never", "attempts": 2}})
        result = codec.decode(await one_call(proxy, "s", "echo"))
    assert result["isError"] is True
    text = result["content"][0]["text"]
    assert code in text
    assert words in text
    # Never replayed where it may have been executed; at start it was not.
    assert len(lines.events) == (1 if mode == "die" else 2)
    assert children() <= before
