"""Case 55: reasoning fields survive both ways, beside a mended content too."""

import pytest

from tests.model.harness import answer, standing

pytestmark = pytest.mark.anyio

STREAM = (
    b'data: {"choices":[{"delta":{"role":"assistant","reasoning_content":"th\\u00e9 r"}}]}\n\n'
    b'data: {"choices":[{"delta":{"reasoning_content":"","content":null}}]}\n\n'
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"1"}]}}]}\n\ndata: [DONE]\n\n'
)


async def test_the_deltas_and_the_replayed_reasoning_stay() -> None:
    response = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%b"
    response %= (len(STREAM), STREAM)
    message = (
        b'{"role":"assistant","content":null,"reasoning_content":"r","reasoning_details":[null]'
    )
    calls = b'{"messages":[%b,"tool_calls":[{"id":"1"}]}]}' % message
    plain = b'{"messages":[%b}]}' % message
    async with standing(answer(response)) as stand:
        for body in (calls, plain):
            assert await stand.exchange(stand.request(body)) == response
        assert stand.bodies == [calls, plain.replace(b'content":null', b'content":""', 1)]


async def test_the_setting_for_tool_calls_applies_beside_reasoning() -> None:
    message = b'{"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[1]}'
    body = b'{"messages":[%b]}' % message
    async with standing(answer(b"HTTP/1.1 204 X\r\n\r\n"), tool_call_content="empty") as stand:
        await stand.exchange(stand.request(body))
        assert stand.bodies == [body.replace(b":null", b':""')]
