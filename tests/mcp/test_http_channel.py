"""Streamable HTTP upstream: streams that break are resumed, redirects kept inside the origin."""

import json

import pytest

from bridge.mcp import http_channel
from tests.mcp import fake
from tests.mcp.callers import called, outcome
from tests.mcp.fake import Act, Fake, Seen
from tests.raw import Peer

pytestmark = pytest.mark.anyio

QUIET = {"jsonrpc": "2.0", "method": "notifications/x"}


def breaks_off(*, ident: str = "e1", retry: int = 1) -> Act:
    """The call is executed; its stream ends after an event with an id."""

    async def run(server: Fake, peer: Peer, seen: Seen) -> None:
        server.executed[seen.message["params"]["name"]] += 1
        head = f"retry: {retry}\n\n".encode() if retry else b""
        await peer.send(fake.STREAM + head + fake.event(QUIET, ident))
        await peer.close()

    return run


def goes_on(*, answers: bool, ident: str = "e2") -> Act:
    async def run(server: Fake, peer: Peer, seen: Seen) -> None:
        await peer.send(fake.STREAM)
        call = server.steps("tools/call")[-1]
        if answers:
            found = {"content": [{"type": "text", "text": "resumed"}]}
            await peer.send(fake.event(fake.answer(call.id, found), ident))
        else:
            await peer.send(fake.event(QUIET, ident))
        await peer.close()

    return run


async def test_a_stream_with_ids_is_resumed_and_nothing_is_executed_twice() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [breaks_off()]
        server.acts["GET"] = [goes_on(answers=False), fake.closes, goes_on(answers=True)]
        result, events = await called(server, {"delivery": "never"})
    assert result["content"][0]["text"] == "resumed"
    assert server.executed["echo"] == 1
    assert [event["outcome"] for event in events] == ["answer"]
    gets = server.steps("GET")
    assert [seen.headers["last-event-id"] for seen in gets] == ["e1", "e2", "e2"]
    (call,) = server.steps("tools/call")
    assert {seen.headers["mcp-session-id"] for seen in gets} == {call.headers["mcp-session-id"]}


@pytest.mark.parametrize("answer", [fake.says(405), fake.says(404), fake.says(200, "x")])
async def test_a_stream_that_cannot_be_resumed_is_a_lost_answer(answer: Act) -> None:
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [breaks_off()]
        server.acts["GET"] = [answer] * 4
        result, events = await called(server, {"delivery": "safe"})
    assert outcome(result) == "outcome_unknown"
    assert "could not be resumed" in events[0]["cause"]
    assert server.executed["echo"] == 1


async def test_a_stream_that_gets_nowhere_is_given_up() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [breaks_off()]
        server.acts["GET"] = [fake.closes] * 9
        result, _ = await called(server, {"delivery": "safe"})
    assert outcome(result) == "outcome_unknown"
    assert len(server.steps("GET")) == http_channel._RESUMPTIONS


async def test_a_modern_stream_is_never_resumed() -> None:
    async with Fake(eras=("modern",)).running() as server:
        server.acts["tools/call"] = [breaks_off()]
        await called(server, {})
    assert server.steps("GET") == []
    assert server.executed["echo"] == 2


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_within_the_origin_is_followed(era: str, status: int) -> None:
    async def moved(server: Fake, peer: Peer, seen: Seen) -> None:
        await peer.send(fake.reply(status, b"", {"Location": "/mcp/"}))

    async with Fake(eras=(era,)).running() as server:
        server.acts["tools/call"] = [moved]
        result, events = await called(server, {"delivery": "never"})
    assert outcome(result) == "answered"
    assert [seen.path for seen in server.steps("tools/call")] == ["/mcp", "/mcp/"]
    assert len(events) == 1


async def test_what_precedes_an_answer_in_one_body_is_handed_on() -> None:
    async def batch(server: Fake, peer: Peer, seen: Seen) -> None:
        found = fake.answer(seen.id, server.answer_to(seen))
        await peer.send(fake.reply(200, [QUIET, found]))

    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [batch]
        result, _ = await called(server, {})
    assert outcome(result) == "answered"


@pytest.mark.parametrize("ident", ['"{}"', "{}.0"])
async def test_an_id_given_back_in_another_form_is_the_same_id(ident: str) -> None:
    async def rewrites(server: Fake, peer: Peer, seen: Seen) -> None:
        text = f'{{"jsonrpc":"2.0","id":{ident.format(seen.id)},"result":{{"content":[]}}}}'
        await peer.send(fake.reply(200, text, {"Content-Type": "application/json"}))

    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [rewrites]
        result, events = await called(server, {"delivery": "never"})
    assert result == {"content": []}
    assert len(events) == 1


async def test_requests_say_what_the_protocol_wants_said() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        await called(server, {})
    opening, noted, call = (
        server.steps(step)[-1] for step in ("initialize", "notifications/initialized", "tools/call")
    )
    for seen in (opening, noted, call):
        assert seen.headers["accept"] == "application/json, text/event-stream"
        assert seen.headers["content-type"] == "application/json"
        assert seen.headers["host"] == f"127.0.0.1:{server.port}"
    assert "mcp-protocol-version" not in opening.headers
    for seen in (noted, call):
        assert seen.headers["mcp-protocol-version"] == "2025-11-25"


async def test_a_server_that_gives_no_session_is_asked_to_end_none() -> None:
    async with Fake(eras=("legacy",), sessions=False).running() as server:
        result, _ = await called(server, {})
    assert outcome(result) == "answered"
    assert server.steps("DELETE") == []
    assert all("mcp-session-id" not in seen.headers for seen in server.seen)


@pytest.mark.parametrize("polls", [3, 8])
async def test_a_server_that_has_its_stream_asked_for_again_and_again_is_still_at_work(
    polls: int,
) -> None:
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [breaks_off()]
        server.acts["GET"] = [*[fake.sends(fake.STREAM)] * polls, goes_on(answers=True)]
        result, events = await called(server, {})
    assert result["content"][0]["text"] == "resumed"
    assert server.executed["echo"] == 1
    assert len(events) == 1


def _whole(seen: Seen) -> bytes:
    return json.dumps(fake.answer(seen.id, {"content": [], "whole": True})).encode()


async def _too_short(server: Fake, peer: Peer, seen: Seen) -> None:
    body = _whole(seen)
    kind = {"Content-Type": "application/json"}
    await peer.send(fake.reply(200, body, kind, length=len(body) + 9))
    await peer.close()


async def _without_its_last_chunk(server: Fake, peer: Peer, seen: Seen) -> None:
    body = _whole(seen)
    head = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    await peer.send(b"HTTP/1.1 200 OK\r\n%b%x\r\n%b\r\n" % (head, len(body), body))
    await peer.close()


def _in_an_event_without(end: bytes) -> Act:
    async def run(server: Fake, peer: Peer, seen: Seen) -> None:
        await peer.send(fake.STREAM + b"id: e1\ndata: " + _whole(seen) + end)
        await peer.close()

    return run


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("delivery", ["at-least-once", "never"])
@pytest.mark.parametrize(
    "cut",
    [
        *(_too_short, _without_its_last_chunk),
        *(_in_an_event_without(b""), _in_an_event_without(b"\n")),
    ],
)
async def test_an_answer_that_is_whole_is_one_however_its_connection_ends(
    cut: Act, delivery: str, era: str
) -> None:
    async with Fake(eras=(era,)).running() as server:
        server.acts["tools/call"] = [fake.executing(cut)]
        result, events = await called(server, {"delivery": delivery})
    assert result["whole"] is True
    assert server.executed["echo"] == 1
    assert [event["outcome"] for event in events] == ["answer"]


@pytest.mark.parametrize("batch", [False, True])
async def test_of_two_answers_the_first_one_counts(batch: bool) -> None:
    async def twice(server: Fake, peer: Peer, seen: Seen) -> None:
        first, second = (fake.answer(seen.id, {"content": [], "n": n}) for n in (1, 2))
        if batch:
            await peer.send(fake.reply(200, [first, second]))
        else:
            await peer.send(fake.STREAM + fake.event(first) + fake.event(second))
            await peer.close()

    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [twice]
        result, _ = await called(server, {})
    assert result["n"] == 1


async def test_a_result_in_a_stream_may_be_as_large_as_the_ceiling() -> None:
    text = "x" * 700_000

    async def large(server: Fake, peer: Peer, seen: Seen) -> None:
        server.executed["echo"] += 1
        found = {"content": [{"type": "text", "text": text}]}
        await peer.send(fake.STREAM + fake.event(fake.answer(seen.id, found)))
        await peer.close()

    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [large] * 2
        result, _ = await called(server, {"max_result_bytes": 1_000_000})
        assert result["content"][0]["text"] == text
        refused, _ = await called(server, {"max_result_bytes": 600_000})
    assert outcome(refused) == "mcp_failed"
    assert "600000" in refused["content"][0]["text"]
    assert server.executed["echo"] == 2


@pytest.mark.parametrize("kind", ["text/plain", "application/json-rpc", "application/x+json", ""])
async def test_an_answer_is_one_whatever_its_media_type_is_called(kind: str) -> None:
    async def named(server: Fake, peer: Peer, seen: Seen) -> None:
        await peer.send(fake.reply(200, _whole(seen), {"Content-Type": kind} if kind else {}))

    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [fake.executing(named)]
        result, _ = await called(server, {})
    assert result["whole"] is True
    assert server.executed["echo"] == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "sent, text", [(b"caf\xe9", "caf\ufffd"), ("\U0001f600".encode(), "\U0001f600")]
)
async def test_bytes_that_are_no_text_cost_a_letter_and_not_the_answer(
    sent: bytes, text: str, stream: bool
) -> None:
    async def run(server: Fake, peer: Peer, seen: Seen) -> None:
        found = fake.answer(seen.id, {"content": [{"type": "text", "text": "TEXT"}]})
        body = json.dumps(found).encode().replace(b"TEXT", sent)
        if stream:
            await peer.send(fake.STREAM + b"data: " + body + b"\n\n")
            await peer.close()
        else:
            await peer.send(fake.reply(200, body, {"Content-Type": "application/json"}))

    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [fake.executing(run)]
        result, _ = await called(server, {})
    assert result["content"][0]["text"] == text
    assert server.executed["echo"] == 1
