"""Case 57: a history with orphan results or calls is the agent's own: unchanged, refused once."""

import pytest

from tests.model.harness import answer, standing

pytestmark = pytest.mark.anyio

REFUSED = b'HTTP/1.1 400 Bad Request\r\nContent-Length: 16\r\n\r\n{"error":"linked"}'[:-2]


@pytest.mark.parametrize(
    "path, body",
    [
        (
            b"/v1/chat/completions",
            b'{"messages":[{"role":"tool","tool_call_id":"unknown","content":"x"},'
            b'{"role":"assistant","content":"","tool_calls":[{"id":"never answered"}]}]}',
        ),
        (
            b"/v1/messages",
            b'{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"u"}]}]}',
        ),
    ],
)
async def test_nothing_is_repaired_and_nothing_retried(path: bytes, body: bytes) -> None:
    async with standing(answer(REFUSED)) as stand:
        assert await stand.exchange(stand.request(body, path)) == REFUSED
        assert stand.bodies == [body]
