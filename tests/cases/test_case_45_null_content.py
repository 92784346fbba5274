"""Case 45: null or absent assistant content without tool calls reaches strict providers as ""."""

import json
from typing import Any

import pytest

from tests.model.harness import Stand, read_request, standing
from tests.raw import Peer

pytestmark = pytest.mark.anyio

WORDS = "Invalid type for 'messages[1].content': expected a string, got null"
BODY = (
    b'{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null},'
    b'{"role":"user","content":"go on"}]}'
)


async def strict(peer: Peer, stand: Stand) -> None:
    """An upstream that refuses null or absent content as strict providers do."""
    while True:
        stand.requests.append(await read_request(peer))
        messages = json.loads(stand.bodies[-1]).get("messages", [])
        bad = any(not isinstance(message.get("content"), str) for message in messages)
        said = json.dumps({"error": {"message": WORDS}} if bad else {"ok": True}).encode()
        status = b"400 Bad Request" if bad else b"200 OK"
        await peer.send(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(said), said))


async def test_a_strict_provider_takes_the_replayed_turn() -> None:
    async with standing(strict) as stand:
        assert (await stand.exchange(stand.request(BODY))).startswith(b"HTTP/1.1 200 OK\r\n")
        assert stand.bodies == [BODY.replace(b":null", b':""')]


async def test_without_the_rule_it_is_refused_in_the_provider_s_own_words() -> None:
    async with standing(strict, mend_content=False) as stand:
        found = await stand.exchange(stand.request(BODY))
        assert found.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert WORDS.encode() in found
        assert stand.bodies == [BODY]


async def test_what_copilot_sends_and_every_other_spelling_of_it() -> None:
    messages: list[tuple[Any, ...]] = [
        (
            '{"content":null,"role":"assistant","refusal":null}',
            '{"content":"","role":"assistant","refusal":null}',
        ),
        ('{"role":"assistant"}', '{"role":"assistant","content":""}'),
        (
            '{ "role" : "assistant" , "name" : "x" }',
            '{ "role" : "assistant" , "name" : "x","content":"" }',
        ),
        ('{"role":"assistant","content":null,"tool_calls":null}', None),
        ('{"role":"assistant","content":null,"function_call":null,"audio":null}', None),
        ('{"\\u0072ole":"assist\\u0061nt","\\u0063ontent":null}', None),
    ]
    async with standing(strict) as stand:
        for before, after in messages:
            after = after or before.replace('ontent":null', 'ontent":""')
            frame = '{{"messages":[{}],"n":1.0}}'
            found = await stand.exchange(stand.request(frame.format(before).encode()))
            assert found.startswith(b"HTTP/1.1 200 OK\r\n"), before
            assert stand.bodies[-1] == frame.format(after).encode()


async def test_what_was_changed_is_told() -> None:
    async with standing(strict, tap=True) as stand:
        await stand.exchange(stand.request(BODY))
        change = {"rule": "content", "path": "messages[1].content", "before": "null", "after": '""'}
        assert (await stand.event())["changes"] == [change]
        assert [record[4] for record in stand.taps if record[0] == "rewrite"] == [
            {"changes": [change]}
        ]


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages":[{"role":"user","content":null},{"role":"tool","content":null}]}',
        b'{"messages":[{"role":"system"},{"role":"developer","content":null}]}',
        b'{"input":[{"type":"reasoning","content":null,"role":"assistant"}]}',
        b'{"messages":[],"metadata":{"messages":[{"role":"assistant","content":null}]}}',
        b'{"messages":[{"role":"assistant","content":"x","extra":{"role":"assistant","content":null}}]}',
        b'{"messages":[{"role":"assistant","content":[{"type":"text","text":null}]}]}',
        b'{"messages":[{"role":"assistant","content":"","tool_calls":[{"function":{"arguments":'
        b'"{\\"role\\":\\"assistant\\",\\"content\\":null}"}}]}]}',
        b'{"tools":[{"function":{"parameters":{"properties":{"messages":[{"role":"assistant"}]}}}}]}',
    ],
)
async def test_other_nulls_stay(body: bytes) -> None:
    async with standing(strict, tap=True) as stand:
        await stand.exchange(stand.request(body.replace(b"{", b"{ ", 1)))
        assert stand.bodies == [body.replace(b"{", b"{ ", 1)]
        assert not [record for record in stand.taps if record[0] == "rewrite"]
