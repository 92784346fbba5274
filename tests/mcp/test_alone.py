"""The proxy as a program: what ends it at start, and the events it writes. (The rest is seen in
tests/cli/test_mcp.py, from outside.)"""

import json
from typing import Any

import pytest

from bridge.mcp import alone
from bridge.mcp.service import McpProxy
from tests.mcp.callers import hub_of
from tests.mcp.fake import Fake
from tests.mcp.test_catalogue import entry, tools

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("second, code, ended", [("c", 1, True), ("d", 0, False)])
async def test_two_tools_of_one_name_end_it(
    second: str, code: int, ended: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    one, two = Fake(tools=tools("b_c")), Fake(tools=tools(second))
    async with one.running(), two.running(), McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [entry("a", one), entry("a_b", two)])
        ending = alone._Ending()
        await alone._check_names(hub_of(proxy), ending)
    assert (ending.code, ending.event.is_set()) == (code, ended)
    assert ("'a_b_c'" in capfd.readouterr().err) is ended


def test_an_event_is_a_line_of_json_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    event: dict[str, Any] = {"event": "mcp", "tool": "é\n"}
    alone._write_event(event)
    (line,) = capfd.readouterr().err.splitlines()
    assert json.loads(line) == event
