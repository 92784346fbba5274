"""Case 65: after the rewrite there is one framing header, and it is right to the byte."""

import re

import pytest

from tests.model.harness import OK, answer, standing

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("nulls", [1, 500])
async def test_the_length_is_right_and_the_connection_stays_in_step(nulls: int) -> None:
    message = '{"role":"assistant","content":%s,"reasoning_content":"naïve 😀 \\u00e9"}'
    frame = '{"messages":[%s]}'
    body = (frame % ",".join([message % "null"] * nulls)).encode()
    expected = (frame % ",".join([message % '""'] * nulls)).encode()
    async with standing(answer(OK)) as stand:
        peer = await stand.dial()
        for _ in range(3):
            await peer.send(stand.request(body))
            await peer.count(len(OK))
        await peer.send(stand.request(b'{"next":1}'))
        await peer.count(len(OK))
        # The raw upstream cuts requests by their length: one that was wrong would break the next.
        assert stand.bodies == [expected] * 3 + [b'{"next":1}']
        assert stand.connections == 1
        for request in stand.requests:
            head = request.partition(b"\r\n\r\n")[0]
            assert len(re.findall(rb"(?im)^(?:content-length|transfer-encoding):", head)) == 1
        await peer.close()
