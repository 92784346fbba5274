"""Case 39: calls without arguments reach the server with an object or nothing, never null."""

import pytest

from tests.mcp.fake import Fake
from tests.mcp.test_http_front import endpoint

pytestmark = pytest.mark.anyio


async def test_absent_null_and_empty_arguments_are_valid_calls() -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open()
        for given in ({}, {"arguments": None}, {"arguments": {}}):
            got = await web.call("tools/call", {"name": "echo", **given})
            assert got.result["content"]
    assert [call.message["params"]["arguments"] for call in server.steps("tools/call")] == [{}] * 3
