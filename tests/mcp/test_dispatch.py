"""What is done for a request: arguments, unknown names, what the caller's era requires."""

from typing import Any

import pytest

from bridge.mcp.dispatch import completed, tool_failure
from bridge.wire import codec
from bridge.wire.codec import Raw
from tests.mcp.fake import Fake
from tests.mcp.test_http_front import endpoint

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


@pytest.mark.parametrize("arguments", [{}, {"arguments": None}, {"arguments": {}}])
async def test_calls_without_arguments_send_an_empty_object(arguments: Json) -> None:
    async with endpoint(Fake()) as web:
        await web.open()
        got = await web.call("tools/call", {"name": "echo", **arguments})
    assert got.result["content"]


async def test_arguments_that_are_no_object_are_never_sent() -> None:
    server = Fake()
    async with endpoint(server) as web:
        await web.open()
        for arguments in ("x", 3, [1], True):
            got = await web.call("tools/call", {"name": "echo", "arguments": arguments})
            assert got.result["isError"] is True
            assert "JSON object" in got.result["content"][0]["text"]
    assert server.steps("tools/call") == []


async def test_an_unknown_tool_is_an_error_after_a_new_look() -> None:
    server = Fake()
    async with endpoint(server) as web:
        await web.open()
        got = await web.call("tools/call", {"name": "new"})
        assert got.error["code"] == -32602
        assert "new" in got.error["message"]
        server.tools.append({"name": "new", "inputSchema": {}})
        assert (await web.call("tools/call", {"name": "new"})).result["content"]
    assert server.executed == {"new": 1}


@pytest.mark.parametrize("name", [None, 3, ["echo"], ""])
async def test_a_name_that_is_none_is_refused(name: Any) -> None:
    async with endpoint(Fake()) as web:
        await web.open()
        got = await web.call("tools/call", {"name": name})
    assert got.error["code"] == -32602


def test_what_the_modern_era_requires_is_added_where_it_is_missing() -> None:
    assert codec.decode(completed(Raw(b'{"content":[]}'), cacheable=False)) == {
        "resultType": "complete",
        "content": [],
    }
    assert codec.decode(completed(Raw(b'{"tools":[],"ttlMs":5}'), cacheable=True)) == {
        "resultType": "complete",
        "cacheScope": "private",
        "ttlMs": 5,
        "tools": [],
    }
    odd = Raw(b'{"resultType":"task"}')
    assert bytes(completed(odd, cacheable=False)) == bytes(odd)


def test_a_failure_is_a_result_a_model_can_read() -> None:
    answer = tool_failure("It failed.", {"code": "timeout"})
    assert answer.result is not None
    assert codec.decode(answer.result) == {
        "content": [{"type": "text", "text": "It failed."}],
        "isError": True,
        "_meta": {"dev.acp-mcp-bridge/failure": {"code": "timeout"}},
    }
