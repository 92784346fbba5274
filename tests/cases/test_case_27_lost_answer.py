"""Case 27: an answer lost after the call was written is replayed only where that is allowed."""

from typing import Any

import pytest

from tests.mcp import fake
from tests.mcp.callers import KEY, called, outcome
from tests.mcp.fake import Fake

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


@pytest.mark.parametrize(
    "delivery, annotations, rows, expected",
    [
        ("safe", {}, 1, "outcome_unknown"),
        ("at-least-once", {}, 2, "answered"),
        ("at-least-once", {"destructiveHint": True}, 1, "outcome_unknown"),
        ("safe", {"readOnlyHint": True}, 2, "answered"),
        ("never", {"readOnlyHint": True}, 1, "outcome_unknown"),
    ],
)
async def test_a_row_is_added_as_often_as_the_mode_and_the_tool_say(
    delivery: str, annotations: Json, rows: int, expected: str
) -> None:
    tool = {"name": "add_row", "inputSchema": {"type": "object"}, "annotations": annotations}
    async with Fake(eras=("legacy",), tools=[tool]).running() as server:
        server.acts["tools/call"] = [fake.executing(fake.closes)]
        result, _ = await called(server, {"delivery": delivery}, name="add_row")
    assert server.executed["add_row"] == rows
    assert outcome(result) == expected
    assert len({seen.meta[KEY] for seen in server.steps("tools/call")}) == 1


async def test_a_server_that_was_not_reached_is_called_once_in_the_strictest_mode() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["initialize"] = [fake.closes, fake.resets]
        result, _ = await called(server, {"delivery": "safe"})
    assert outcome(result) == "answered"
    assert server.executed["echo"] == 1
