"""Case 59: tool arguments are opaque, however broken; the bookkeeping survives them."""

import pytest

from tests.model.harness import answer, standing

pytestmark = pytest.mark.anyio

ARGUMENTS = [
    b'""',
    b'" "',
    b'"{\\"p\\": \\"a \\"b\\" c\\"}"',
    b"null",
    b"{}",
    b'"\\u0000"',
    b'"{\\"content\\":null}"',
]


@pytest.mark.parametrize("arguments", ARGUMENTS)
async def test_arguments_pass_both_ways_as_they_are(arguments: bytes) -> None:
    call = b'{"id":"1","type":"function","function":{"name":"f","arguments":%b}}' % arguments
    message = b'{"role":"assistant","content":null,"tool_calls":[%b]}' % call
    reply = b'{"choices":[{"message":%b,"finish_reason":"tool_calls"}]}' % message
    response = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(reply), reply)
    body = b'{"messages":[%b,{"role":"assistant","content":null}]}' % message
    async with standing(answer(response), tap=True) as stand:
        assert await stand.exchange(stand.request(body)) == response
        head, _, tail = body.rpartition(b":null")
        assert stand.bodies == [head + b':""' + tail]
        event = await stand.event()
        assert (event["outcome"], event["finish_reason"]) == ("complete", "tool_calls")
        bodies = [bytes(record[5]) for record in stand.taps if record[0] == "request_body"]
        assert b"".join(bodies) == body
