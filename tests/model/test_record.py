"""What is told of an exchange, to whom, and what never is."""

import json

import anyio
import pytest

from bridge.model.record import Observers
from tests.model.harness import OK, Stand, answer, read_request, standing
from tests.raw import Peer

pytestmark = pytest.mark.anyio

USAGE = b'{"prompt_tokens":3,"completion_tokens":4}'
REPLY = b'{"model":"m2","choices":[{"finish_reason":"stop"}],"usage":%b}' % USAGE
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(REPLY), REPLY)
BODY = b'{"model":"m","stream":false,"messages":[{"role":"user","content":"hi"}]}'


async def test_an_event_has_the_exchange_in_short() -> None:
    async with standing(answer(ANSWER)) as stand:
        await stand.exchange(
            stand.request(BODY, b"/v1/chat/completions?key=k", b"X-ACP-Model-Request-ID: r1")
        )
        event = await stand.event()
        times = [event.pop(name) for name in ("at", "head", "first", "end")]
        assert 0 <= times[1] <= times[2] <= times[3]
        assert event == {
            "event": "model",
            "session": "",
            "exchange": 1,
            "method": "POST",
            "path": "/v1/chat/completions",
            "dialect": "chat",
            "purpose": "turn",
            "upstream": f"http://127.0.0.1:{stand.upstream_port}",
            "outcome": "complete",
            "status": 200,
            "model": "m",
            "request_bytes": len(BODY),
            "response_bytes": len(REPLY),
            "usage": {"input": 3, "output": 4},
            "finish_reason": "stop",
            "request_id": "r1",
        }


async def test_exchanges_of_another_dialect_are_told_from_what_passed() -> None:
    body = b'{"model":"c","stream":true,"system":"Write a title","messages":[],"max_tokens":20}'
    async with standing(answer(OK)) as stand:
        await stand.exchange(stand.request(body, b"/v1/messages"))
        await stand.exchange(stand.request(body, b"/v1/messages/count_tokens"))
        await stand.exchange(stand.request(b"", b"/v1/models", method=b"GET"))
        await stand.exchange(stand.request(b"x" * (2 << 20), b"/v1/responses"))
        told = [
            (e["dialect"], e["purpose"], e.get("side"), e.get("model"), e.get("stream"))
            for e in stand.events
        ]
        assert told == [
            ("anthropic", "side", "title", "c", True),
            ("anthropic", "count", None, None, None),
            ("other", "models", None, None, None),
            ("responses", "turn", None, None, None),
        ]


async def test_what_a_call_is_for_is_known_before_it_is_answered() -> None:
    body = b'{"model":"small","system":"Write a title","messages":[]}'
    known: list[str] = []

    async def script(peer: Peer, stand: Stand) -> None:
        await read_request(peer)
        await peer.send(b"HTTP/1.1 400 No\r\nContent-Length: 4\r\n\r\n")
        await there.wait()
        turn = stand.proxy.turn_ended("")
        assert turn is not None
        known.extend(error.side or "" for error in turn.errors)
        await peer.send(b"oops")

    there = anyio.Event()
    async with standing(script) as stand:
        stand.proxy.turn_began("")
        peer = await stand.dial()
        await peer.send(stand.request(body, b"/v1/messages"))
        await peer.until(b"\r\n\r\n")
        there.set()
        assert await peer.count(4) == b"oops"
        await peer.close()
    assert known == ["title"]


async def test_a_side_call_of_an_unknown_kind_and_a_question_for_more_are_told() -> None:
    async with standing(answer(OK)) as stand:
        for body in (
            b'{"tools":[{}],"messages":[]}',
            b'{"messages":[{"content":"which way?"}]}',
            b'{"tools":[{}],"messages":[{"content":"Please continue from where you left off."}]}',
        ):
            await stand.exchange(stand.request(body))
        told = [(e["purpose"], e.get("side"), e.get("again")) for e in stand.events]
        assert told == [("turn", None, None), ("side", "other", None), ("turn", None, True)]


ERROR = b'{"error":{"message":"no such model for CANARY-key-1"}}'


@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/messages", b"/v1/responses"])
async def test_a_refusal_is_told_in_the_upstream_s_words_without_the_key(path: bytes) -> None:
    refusal = b"HTTP/1.1 404 No\r\nContent-Length: %d\r\n\r\n%b" % (len(ERROR), ERROR)
    async with standing(answer(refusal), tap=True) as stand:
        line = b"Authorization: Bearer CANARY-key-1"
        answered = await stand.exchange(stand.request(BODY, path, line))
        assert answered.endswith(ERROR)
        event = await stand.event()
        assert (event["status"], event["outcome"]) == (404, "complete")
        assert event["error"] == "no such model for ***"
        assert event["model"] == "m"


async def test_a_refusal_without_a_body_is_told_by_its_status() -> None:
    refusal = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
    async with standing(answer(refusal)) as stand:
        await stand.exchange(stand.request(b"{}"))
        event = await stand.event()
        assert (event["status"], event["error"]) == (503, "status 503")


async def test_an_error_in_a_stream_that_began_well_is_told() -> None:
    stream = b'data: {"model":"m","choices":[]}\n\ndata: {"error":{"message":"overloaded"}}\n\n'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
    async with standing(answer(head % len(stream) + stream)) as stand:
        await stand.exchange(stand.request(BODY))
        event = await stand.event()
        assert (event["status"], event["error"]) == (200, "overloaded")


async def test_what_a_failed_call_was_for_is_told_though_it_got_no_answer() -> None:
    async def leave(peer: Peer, stand: Stand) -> None:
        await read_request(peer)

    body = b'{"model":"small","system":"Write a title","messages":[]}'
    async with standing(leave) as stand:
        answered = await stand.exchange(stand.request(body, b"/v1/messages"))
        assert answered.startswith(b"HTTP/1.1 502 ")
        event = await stand.event()
        assert (event["purpose"], event["side"], event["model"]) == ("side", "title", "small")
        assert (event["outcome"], event["status"]) == ("failed", 502)


async def test_the_tap_gets_all_that_passes_in_order() -> None:
    body = b'{"messages":[{"role":"assistant","content":null}]}'
    async with standing(answer(ANSWER), tap=True) as stand:
        await stand.exchange(stand.request(body))
        await stand.event()
        kinds = [(record[0], record[3]) for record in stand.taps]
        assert kinds == [
            ("request", "in"),
            ("request_body", "in"),
            ("rewrite", None),
            ("forward", "out"),
            ("response", "in"),
            ("response_body", "in"),
            ("end", None),
        ]
        assert {record[1:3] for record in stand.taps} == {("", 1)}
        assert bytes(stand.taps[1][5]) == body
        assert bytes(stand.taps[5][5]) == REPLY
        assert stand.taps[0][4]["target"].endswith(b"/v1/chat/completions")
        assert (b"Content-Type", b"application/json") in stand.taps[0][4]["headers"]
        assert stand.taps[4][4]["status"] == 200
        assert stand.taps[6][4] == stand.events[0]


async def test_no_credential_is_in_what_is_told_of_an_exchange() -> None:
    lines = [b"Authorization: Bearer CANARY-1", b"x-api-key: CANARY-2", b"Cookie: CANARY-3"]
    lines += [b"Idempotency-Key: no", b"X-Auth-Token: CANARY-6", b"X-Keyed: no"]
    async with standing(answer(ANSWER)) as stand:
        await stand.exchange(stand.request(BODY, b"/v1/chat/completions?key=CANARY-4", *lines))
        assert "CANARY" not in json.dumps(stand.events)
        assert b"CANARY-1" in stand.requests[0]
        assert b"CANARY-4" in stand.requests[0]


async def test_a_long_stream_keeps_its_beginning_and_its_end() -> None:
    filler = b'data: {"choices":[{"delta":{"content":"%b"},"finish_reason":null}]}\n\n' % (
        b"x" * 60_000
    )
    head = b'data: {"model":"first","choices":[]}\n\n'
    last = b'data: {"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}\n\n'
    body = head + filler * 400 + last
    stream = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
    async with standing(answer(stream % len(body) + body)) as stand:
        await stand.exchange(stand.request(b"{}"))
        event = await stand.event()
        assert event["response_bytes"] == len(body) > 20 << 20
        assert (event["model"], event["finish_reason"]) == ("first", "stop")
        assert event["usage"] == {"input": 1}


def test_without_observers_nobody_is_watching() -> None:
    assert not Observers().watching
    assert Observers(on_event=lambda event: None).watching
