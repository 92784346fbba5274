"""Case 29: a tool's own error is an answer: passed on as the same kind, and never made again."""

import pytest

from bridge.errors import RequestFailed
from tests.mcp import fake
from tests.mcp.callers import called
from tests.mcp.fake import Fake

pytestmark = pytest.mark.anyio

FAILED = {"isError": True, "content": [{"type": "text", "text": "no such row"}]}


@pytest.mark.parametrize("delivery", ["at-least-once", "safe", "never"])
async def test_a_failed_result_stays_a_result(delivery: str) -> None:
    async with Fake(eras=("legacy",), result=FAILED).running() as server:
        result, _ = await called(server, {"delivery": delivery})
    assert result == FAILED
    assert server.executed["echo"] == 1


@pytest.mark.parametrize("code", [-32602, -32603, -32000, -1])
async def test_an_error_stays_an_error(code: int) -> None:
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [fake.refuses(code)]
        with pytest.raises(RequestFailed) as caught:
            await called(server, {})
    assert caught.value.code == code
    assert len(server.steps("tools/call")) == 1
