"""Case 47: only requests are mended; responses reach the agent as they are, errors too."""

import pytest

from tests.model.harness import answer, standing

pytestmark = pytest.mark.anyio

MESSAGE = b'{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]}'
BODIES = [
    b'{"choices":[{"message":%b}]}' % MESSAGE,
    b'{"choices":[{"message":{"role":"assistant","content":null}}]}',
    b'{"messages":[{"role":"assistant","content":null}]}',
    b'data: {"choices":[{"delta":{"role":"assistant","content":null}}]}\n\ndata: [DONE]\n\n',
]


@pytest.mark.parametrize("status", [b"200 OK", b"400 Bad Request", b"503 Busy"])
@pytest.mark.parametrize("body", BODIES)
async def test_null_stays_null_on_the_way_back(status: bytes, body: bytes) -> None:
    response = b"HTTP/1.1 %b\r\nContent-Type: x\r\nContent-Length: %d\r\n\r\n%b"
    response %= (status, len(body), body)
    async with standing(answer(response)) as stand:
        assert await stand.exchange(stand.request(b'{"messages":[]}')) == response
