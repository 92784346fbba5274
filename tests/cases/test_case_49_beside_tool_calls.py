"""Case 49: beside tool calls some providers refuse null, others ""; the setting serves either."""

import json

import pytest

from tests.model.harness import Stand, read_request, standing
from tests.raw import Peer

pytestmark = pytest.mark.anyio

CALLS = b'"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]'
NULL = b'{"messages":[{"role":"assistant","content":null,%b}]}' % CALLS
ABSENT = b'{"messages":[{"role":"assistant",%b}]}' % CALLS
EMPTY = b'{"messages":[{"role":"assistant","content":"",%b}]}' % CALLS


def refusing(refused: object):
    """An upstream that refuses this content beside tool calls."""

    async def script(peer: Peer, stand: Stand) -> None:
        while True:
            stand.requests.append(await read_request(peer))
            message = json.loads(stand.bodies[-1])["messages"][0]
            status = b"400 No" if message.get("content") == refused else b"200 OK"
            await peer.send(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status)

    return script


@pytest.mark.parametrize(
    "refused, mode, body, forwarded",
    [
        (None, "empty", NULL, EMPTY),
        (
            None,
            "empty",
            ABSENT,
            ABSENT.replace(b"}]}", b'}],"content":""}]}').replace(b"]}],", b"],"),
        ),
        ("", "null", NULL, NULL),
        ("", "null", ABSENT, None),
        ("", "keep", NULL, NULL),
        ("", "keep", ABSENT, ABSENT),
    ],
)
async def test_with_its_setting_each_accepts(refused, mode, body, forwarded) -> None:
    async with standing(refusing(refused), tool_call_content=mode) as stand:
        found = await stand.exchange(stand.request(body))
        assert found.startswith(b"HTTP/1.1 200 OK\r\n")
        if mode == "empty" or body is ABSENT:
            before, after = (
                json.loads(body)["messages"][0],
                json.loads(stand.bodies[0])["messages"][0],
            )
            wanted = "" if mode == "empty" else None
            if mode != "keep":
                assert after == {**before, "content": wanted}
        if body is NULL:
            assert stand.bodies == [forwarded]


@pytest.mark.parametrize("mode", ["keep", "empty", "null"])
async def test_an_empty_string_stays_and_lists_stay(mode: str) -> None:
    listed = EMPTY.replace(b'"content":""', b'"content":[]')
    async with standing(refusing(0), tool_call_content=mode) as stand:
        for body in (EMPTY, listed):
            await stand.exchange(stand.request(body))
        assert stand.bodies == [EMPTY, listed]


async def test_keep_is_the_default() -> None:
    async with standing(refusing(0)) as stand:
        for body in (NULL, ABSENT, EMPTY):
            await stand.exchange(stand.request(body))
        assert stand.bodies == [NULL, ABSENT, EMPTY]
