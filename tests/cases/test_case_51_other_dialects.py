"""Case 51: blank Anthropic blocks, and whatever other dialects hold, are not our business."""

import pytest

from tests.model.harness import answer, standing

pytestmark = pytest.mark.anyio

REFUSAL = (
    b'{"type":"error","error":{"type":"invalid_request_error",'
    b'"message":"text content blocks must be non-empty"}}'
)


@pytest.mark.parametrize(
    "path, body",
    [
        (
            b"/v1/messages?beta=true",
            b'{"messages":[{"role":"assistant","content":[{"type":"text","text":"\\n"}]},'
            b'{"role":"user","content":[{"type":"text","text":""}]},{"role":"assistant","content":null}]}',
        ),
        (
            b"/v1/responses",
            b'{"input":[{"type":"reasoning","content":null},{"role":"assistant","content":null}]}',
        ),
        (
            b"/v1beta/models/g:streamGenerateContent?alt=sse",
            b'{"contents":[{"role":"model","parts":null}],"messages":[{"role":"assistant"}]}',
        ),
    ],
)
async def test_body_and_refusal_pass_unchanged_and_once(path: bytes, body: bytes) -> None:
    response = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nX-Id: 7\r\n"
    response += b"Content-Length: %d\r\n\r\n%b" % (len(REFUSAL), REFUSAL)
    async with standing(answer(response)) as stand:
        assert await stand.exchange(stand.request(body, path)) == response
        assert stand.bodies == [body]
