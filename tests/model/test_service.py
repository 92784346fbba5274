"""Routes, sessions, pools, limits; and that nothing is loaded before it is needed."""

import json
import subprocess
import sys

import anyio
import pytest

from bridge.errors import UsageError
from bridge.model.service import ModelProxy
from protocol_schemas.model import ModelLimits, ModelOptions
from protocol_schemas.profile import SideCall
from tests.model.harness import OK, Stand, answer, read_request, standing
from tests.raw import Peer

pytestmark = pytest.mark.anyio

PLAIN = ModelOptions()


def at(stand: Stand, url: str) -> None:
    """Points the stand's requests to another route's URL."""
    stand.prefix = ("/" + url.removeprefix("http://").partition("/")[2]).encode().rstrip(b"/")


async def test_a_route_keeps_the_path_and_the_query_in_sight() -> None:
    async with standing(answer(OK)) as stand:
        base = f"http://127.0.0.1:{stand.upstream_port}"
        for tail in ("", "/", "/v1", "/v1/", "/a/b%20c?k=v"):
            url = stand.proxy.route(base + tail, options=PLAIN)
            root = stand.proxy.route(base, options=PLAIN)
            assert url == root + tail
        at(stand, stand.proxy.route(base + "/v1", options=PLAIN))
        await stand.exchange(stand.request(b"{}", b"/chat/completions"))
        assert stand.requests[0].startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")


async def test_the_same_route_is_given_again_and_others_are_apart() -> None:
    async with standing(answer(OK)) as stand:
        base = f"http://127.0.0.1:{stand.upstream_port}"
        first = stand.proxy.route(base, session="a", options=PLAIN)
        assert stand.proxy.route(base, session="a", options=PLAIN) == first
        others = {
            stand.proxy.route(base, session="b", options=PLAIN),
            stand.proxy.route(base, session="a", options=ModelOptions(drop_nulls=True)),
            stand.proxy.route("http://user:pw@" + base[7:], session="a", options=PLAIN),
        }
        assert len(others | {first}) == 4


async def test_sessions_share_one_pool_a_distinct_upstream() -> None:
    async with standing(answer(OK)) as stand:
        base = f"http://127.0.0.1:{stand.upstream_port}"
        for session in ("a", "b", "c"):
            at(stand, stand.proxy.route(base, session=session, options=PLAIN))
            await stand.exchange(stand.request(b"{}"))
        assert stand.connections == 1
        assert [event["session"] for event in stand.events] == ["a", "b", "c"]


async def test_a_forgotten_session_s_routes_are_gone_and_what_is_under_way_goes_on() -> None:
    go, there = anyio.Event(), anyio.Event()

    async def script(peer: Peer, stand: Stand) -> None:
        await read_request(peer)
        there.set()
        await go.wait()
        await peer.send(OK)

    async with standing(script) as stand:
        base = f"http://127.0.0.1:{stand.upstream_port}"
        kept = stand.prefix
        at(stand, stand.proxy.route(base, session="a", options=PLAIN))
        peer = await stand.dial()
        await peer.send(stand.request(b"{}"))
        await there.wait()
        stand.proxy.forget("a")
        go.set()
        assert await peer.count(len(OK)) == OK
        found = await stand.exchange(stand.request(b"{}"))
        assert found.startswith(b"HTTP/1.1 404 ")
        stand.prefix = kept
        assert await stand.exchange(stand.request(b"{}")) == OK
        stand.proxy.forget("never seen")
        await peer.close()


async def test_a_profiles_own_side_calls_are_known_on_its_routes() -> None:
    rule = SideCall(wire="chat", field="model", equals="small", purpose="title")
    async with standing(answer(OK)) as stand:
        base = f"http://127.0.0.1:{stand.upstream_port}"
        plain = stand.proxy.route(base, session="a", options=PLAIN)
        ruled = stand.proxy.route(base, session="a", options=PLAIN, side_calls=[rule])
        assert plain != ruled
        assert stand.proxy.route(base, session="a", options=PLAIN, side_calls=[rule]) == ruled
        for url in (plain, ruled):
            at(stand, url)
            await stand.exchange(stand.request(b'{"model":"small","tools":[{}]}'))
        sides = [(event["purpose"], event.get("side")) for event in stand.events]
        assert sides == [("turn", None), ("side", "title")]


async def test_a_session_s_turn_knows_its_generations() -> None:
    refusal = b"HTTP/1.1 429 No\r\nContent-Length: 4\r\n\r\nslow"
    async with standing(answer(refusal, OK)) as stand:
        at(
            stand,
            stand.proxy.route(
                f"http://127.0.0.1:{stand.upstream_port}", session="a", options=PLAIN
            ),
        )
        stand.proxy.turn_began("a")
        await stand.exchange(stand.request(b"{}"))
        await stand.exchange(stand.request(b"{}"))
        turn = stand.proxy.turn_ended("a")
        assert turn is not None
        assert [(e.status, e.error, e.recovered) for e in turn.errors] == [(429, "slow", True)]
        assert turn.last == "answered"
        stand.proxy.turn_began("never seen")
        assert stand.proxy.turn_ended("never seen") is None


async def test_an_upstream_behind_a_forward_proxy_is_asked_through_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The stand's own upstream plays the proxy: its requests' targets tell.
    async with standing(answer(OK)) as stand:
        monkeypatch.setenv("http_proxy", f"http://user:CANARY@127.0.0.1:{stand.upstream_port}")
        monkeypatch.setenv("no_proxy", "other.test")
        at(stand, stand.proxy.route("http://api.test:8000/v1", session="a", options=PLAIN))
        assert await stand.exchange(stand.request(b"{}", b"/chat/completions")) == OK
        (request,) = stand.requests
        assert request.startswith(b"POST http://api.test:8000/v1/chat/completions HTTP/1.1\r\n")
        assert b"\r\nHost: api.test:8000\r\n" in request
        assert b"\r\nProxy-Authorization: Basic " in request
        assert "CANARY" not in json.dumps(stand.events)


async def test_leaving_closes_everything() -> None:
    ended = anyio.Event()

    async def script(peer: Peer, stand: Stand) -> None:
        stand.requests.append(await read_request(peer))
        await peer.send(OK)
        await peer.rest()
        ended.set()

    async with standing(script) as stand:
        async with ModelProxy() as proxy:
            url = proxy.mount(f"http://127.0.0.1:{stand.upstream_port}", options=PLAIN)
            at(stand, url)
            port, stand.port = stand.port, int(url.split(":")[2].partition("/")[0])
            await stand.exchange(stand.request(b"{}"))
        await ended.wait()
        with pytest.raises(OSError):
            await stand.dial()
        stand.port = port


async def test_an_error_of_the_block_comes_out_as_it_is() -> None:
    async def fail() -> None:
        async with ModelProxy() as proxy:
            proxy.mount("http://127.0.0.1:9", options=PLAIN)
            raise LookupError

    with pytest.raises(LookupError):
        await fail()


async def test_what_cannot_be_routed_is_a_usage_error() -> None:
    async with ModelProxy() as proxy:
        with pytest.raises(UsageError, match="http"):
            proxy.route("ftp://x", options=PLAIN)
    async with ModelProxy(host="0.0.0.0") as proxy:
        with pytest.raises(UsageError, match="--allow-remote"):
            proxy.route("http://x", options=PLAIN)
    async with ModelProxy(host="0.0.0.0", allow_remote=True) as proxy:
        assert proxy.route("http://x", options=PLAIN).startswith("http://0.0.0.0:")


def reply(tokens: int, reason: str = "stop") -> bytes:
    body = json.dumps(
        {
            "choices": [{"finish_reason": reason}],
            "usage": {"prompt_tokens": 1, "completion_tokens": tokens},
        }
    ).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


TURN = b'{"messages":[],"tools":[{}]}'
SIDE = b'{"messages":[{"role":"system","content":"title"}]}'


@pytest.mark.parametrize(
    "limits, answers, calls, name",
    [
        ({"max_turns": 2}, [reply(1)], [TURN, SIDE, TURN], "max_turns"),
        ({"max_total_tokens": 10}, [reply(4), reply(5)], [TURN, SIDE], "max_total_tokens"),
        ({"max_turn_tokens": 50}, [reply(9), reply(50)], [TURN, TURN], "max_turn_tokens"),
        ({"max_turn_tokens": 50}, [reply(9), reply(3, "length")], [TURN, TURN], "max_turn_tokens"),
        ({"max_seconds": 1e-9}, [reply(1)], [TURN], "max_seconds"),
    ],
)
async def test_a_limit_refuses_the_next_call_and_is_named(limits, answers, calls, name) -> None:
    async with standing(answer(*answers), limits=ModelLimits(**limits)) as stand:
        for call in calls:
            assert (await stand.exchange(stand.request(call))).startswith(b"HTTP/1.1 200 ")
        assert stand.proxy.stopped_by("") is None
        for path in (b"/v1/chat/completions", b"/v1/messages", b"/v1/responses"):
            found = await stand.exchange(stand.request(TURN, path))
            assert found.startswith(b"HTTP/1.1 400 ")
            error = json.loads(found.partition(b"\r\n\r\n")[2])["error"]
            assert error["code"] == "limit"
            assert name in error["message"]
        assert len(stand.requests) == len(calls)
        assert stand.proxy.stopped_by("") == name
        event = await stand.event(len(calls))
        assert (event["outcome"], event["status"], event["limit"]) == ("refused", 400, name)
        # What generates nothing is let through.
        assert (await stand.exchange(stand.request(b"", b"/v1/models", method=b"GET"))).startswith(
            b"HTTP/1.1 200 "
        )


@pytest.mark.parametrize(
    "path, events",
    [
        (
            b"/v1/chat/completions",
            b'data: {"choices":[],"usage":{"completion_tokens":50}}\n\ndata: [DONE]\n\n',
        ),
        (
            b"/v1/messages",
            b'data: {"type":"message_delta","usage":{"output_tokens":50}}\n\n'
            b'data: {"type":"message_stop"}\n\n',
        ),
        (
            b"/v1/responses",
            b'data: {"type":"response.completed","response":{"usage":{"output_tokens":50}}}\n\n',
        ),
    ],
)
async def test_a_stream_counts_when_it_says_that_it_is_over(path: bytes, events: bytes) -> None:
    async def script(peer: Peer, stand: Stand) -> None:
        await read_request(peer)
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + events)
        await anyio.sleep_forever()  # The agent goes on before the upstream has ended the stream.

    async with standing(script, limits=ModelLimits(max_total_tokens=50)) as stand:
        peer = await stand.dial()
        await peer.send(stand.request(b"{}", path))
        await peer.until(events)
        found = await stand.exchange(stand.request(b"{}", path))
        assert found.startswith(b"HTTP/1.1 400 ")
        assert stand.proxy.stopped_by("") == "max_total_tokens"
        await peer.close()


async def test_a_turn_that_failed_is_not_counted() -> None:
    busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
    async with standing(answer(busy, busy, reply(1)), limits=ModelLimits(max_turns=1)) as stand:
        for status in (b"503", b"503", b"200", b"400"):
            found = await stand.exchange(stand.request(TURN))
            assert found.split(b" ")[1] == status


async def test_a_capped_call_asks_for_no_more_than_the_cap() -> None:
    limits = ModelLimits(max_turn_tokens=50)
    async with standing(answer(reply(1)), limits=limits) as stand:
        await stand.exchange(stand.request(b'{"messages":[],"max_tokens":1000}'))
        await stand.exchange(stand.request(b'{"max_tokens": 1000}', b"/v1/messages"))
        assert stand.bodies == [b'{"messages":[],"max_tokens":50}', b'{"max_tokens": 50}']
        encoded = stand.request(b"xx", b"/v1/messages", b"Content-Encoding: lzma")
        found = await stand.exchange(encoded)
        assert found.startswith(b"HTTP/1.1 415 ")
        assert len(stand.requests) == 2


def test_nothing_of_http_is_loaded_before_the_first_route() -> None:
    code = (
        "import sys, bridge.model.service, bridge.model.rewrite;"
        "print([name for name in ('httptools', 'bridge.io.httpserver', 'bridge.io.httpclient',"
        "'bridge.model.relay', 'bridge.wire.splice', 'h11') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
