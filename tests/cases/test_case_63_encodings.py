"""Case 63: a compressed answer stays compressed and labelled, whatever its status and kind."""

import gzip
import json
import zlib

import brotli
import pytest
import zstandard

from tests.model.harness import answer, standing

pytestmark = pytest.mark.anyio

REPLY = {
    "model": "m",
    "choices": [{"message": {"content": "é"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
}
EVENTS = b"data: " + json.dumps(REPLY).encode() + b"\n\ndata: [DONE]\n\n"
ENCODE = {
    b"gzip": gzip.compress,
    b"deflate": zlib.compress,
    b"br": brotli.compress,
    b"zstd": zstandard.compress,
}


@pytest.mark.parametrize("encoding", ENCODE)
@pytest.mark.parametrize(
    "status, kind, content",
    [
        (b"200 OK", b"application/json", json.dumps(REPLY).encode()),
        (b"200 OK", b"text/event-stream", EVENTS),
        (b"429 Too Many Requests", b"application/json", b'{"error":{"message":"slow down"}}'),
    ],
)
@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_body_and_label_agree(encoding, status, kind, content, framing) -> None:
    body = ENCODE[encoding](content)
    head = b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Encoding: %b\r\n" % (status, kind, encoding)
    if framing == "length":
        response = b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body)
    else:
        framed = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        response = head + b"Transfer-Encoding: chunked\r\n\r\n" + framed
    async with standing(answer(response)) as stand:
        sent = stand.request(
            b'{"messages":[]}', b"/v1/chat/completions", b"Accept-Encoding: " + encoding
        )
        found = await stand.exchange(sent, len(response.partition(b"\r\n\r\n")[2]))
        assert found == response
        assert b"Accept-Encoding: " + encoding in stand.requests[0]
        if status == b"200 OK":
            # The bookkeeping reads what the agent gets compressed.
            assert (await stand.event())["usage"] == {"input": 3, "output": 4}


async def test_an_agent_that_asked_for_none_causes_none_to_be_asked_for() -> None:
    async with standing(answer(b"HTTP/1.1 204 X\r\n\r\n")) as stand:
        await stand.exchange(stand.request(b"{}"))
        assert b"accept-encoding" not in stand.requests[0].lower()
