"""Modern callers of legacy servers that ask: the call waits while the caller fetches the answer."""

import json
from typing import Any

import anyio
import pytest

from bridge.mcp import parked
from bridge.mcp.call import moment
from bridge.mcp.service import McpProxy
from tests.mcp import fake
from tests.mcp.callers import QUICK, hub_of
from tests.mcp.fake import Fake, Seen
from tests.mcp.test_catalogue import entry
from tests.mcp.test_http_front import endpoint
from tests.mcp.test_inputs import asks, said
from tests.mcp.test_relay import note
from tests.mcp.web import CAPABILITIES_KEY, Web
from tests.raw import Peer

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
ABLE = {"_meta": {CAPABILITIES_KEY: {"sampling": {}, "elicitation": {}}}}
CALL = {"name": "echo", "arguments": {}, **ABLE}


async def test_a_servers_question_is_an_input_required_and_its_answer_goes_on_with_the_call() -> (
    None
):
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        server.acts["tools/call"] = [asks("sampling/createMessage", {"maxTokens": 1})]
        first = (await web.ask("tools/call", CALL)).result
        assert first["resultType"] == "input_required"
        ((name, question),) = first["inputRequests"].items()
        assert question == {"method": "sampling/createMessage", "params": {"maxTokens": 1}}
        answers = {name: {"role": "assistant", "content": {"type": "text", "text": "yes"}}}
        again = {**CALL, "inputResponses": answers, "requestState": first["requestState"]}
        second = (await web.ask("tools/call", again)).result
    assert second["content"][0]["text"] == repr(answers[name])
    assert second["resultType"] == "complete"
    assert len(server.steps("tools/call")) == 1


async def test_questions_one_after_the_other_are_rounds() -> None:
    async def asks_twice(server: Fake, peer: Peer, seen: Seen) -> None:
        await peer.send(fake.STREAM)
        for ident in ("a", "b"):
            question = {"jsonrpc": "2.0", "id": ident, "method": "elicitation/create"}
            await peer.send(fake.event(question))
            await server.until(lambda ident=ident: any(said(x) == ident for x in server.seen))
        await peer.send(fake.event(fake.answer(seen.id, {"content": []})))
        await peer.close()

    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        server.acts["tools/call"] = [asks_twice]
        result = (await web.ask("tools/call", CALL)).result
        rounds = 0
        while result["resultType"] == "input_required":
            rounds += 1
            (name,) = result["inputRequests"]
            answers = {name: {"action": "accept"}}
            again = {**CALL, "inputResponses": answers, "requestState": result["requestState"]}
            result = (await web.ask("tools/call", again)).result
    assert rounds == 2
    assert result["content"] == []


@pytest.mark.parametrize("responses", [{}, {"other": {}}])
async def test_what_was_not_answered_is_asked_again(responses: Json) -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        server.acts["tools/call"] = [asks("elicitation/create", {})]
        first = (await web.ask("tools/call", CALL)).result
        again = {**CALL, "inputResponses": responses, "requestState": first["requestState"]}
        assert (await web.ask("tools/call", again)).result == first


async def test_a_state_that_leads_nowhere_is_refused_and_foreign_ones_pass() -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        stale = {**CALL, "requestState": "dev.acp-mcp-bridge.nothing"}
        assert (await web.ask("tools/call", stale)).error["code"] == -32602
        assert server.executed == {}
        assert (await web.ask("tools/call", {**CALL, "requestState": "other"})).result["content"]
    (call,) = server.steps("tools/call")
    assert call.message["params"]["requestState"] == "other"


async def test_a_caller_who_leaves_while_it_waits_ends_the_call() -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        server.acts["tools/call"] = [fake.hangs]
        message, headers = web.modern("tools/call", CALL)
        peer = await web.send("POST", json.dumps(message).encode(), headers)
        await server.until(lambda: bool(server.steps("tools/call")))
        await peer.close()
        await server.until(lambda: len(server.opened) == len(server.ended))
    assert len(server.steps("notifications/cancelled")) == 1


async def test_a_call_that_fails_fails_as_ever() -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server, {"delivery": "never"}) as web:
        server.acts["tools/call"] = [fake.closes]
        result = (await web.ask("tools/call", CALL)).result
    assert result["isError"] is True


async def test_what_is_told_meanwhile_goes_to_whoever_waits() -> None:
    log = note("notifications/message", {"level": "info", "data": "x"})
    release = anyio.Event()

    async def tells(server: Fake, peer: Peer, seen: Seen) -> None:
        await peer.send(fake.STREAM + fake.event(log))
        await release.wait()
        await peer.send(fake.event(fake.answer(seen.id, {"content": []})))
        await peer.close()

    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        server.acts["tools/call"] = [tells]
        message, headers = web.modern("tools/call", CALL)
        async with web.streaming(message, headers) as stream:
            assert await stream.event() == log
            release.set()
            assert (await stream.event())["result"]["content"] == []


@pytest.mark.parametrize("end", ["with its turn", "by the clock"])
async def test_a_parked_call_that_ends_is_forgotten(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parked, "KEPT_FOR", 0.05 if end == "by the clock" else 60)
    server = Fake(eras=("legacy",))
    async with server.running(), McpProxy(lambda event: None) as proxy:
        (given,) = proxy.mount("a", [entry("s", server)], {"s": QUICK})
        hub, web = hub_of(proxy), Web(given["url"])
        server.acts["tools/call"] = [asks("elicitation/create", {})]
        first = (await web.ask("tools/call", CALL)).result
        assert first["resultType"] == "input_required"
        if end == "with its turn":
            assert hub.parked.waiting == 1
            hub.end_calls(before=moment())
        await server.until(lambda: bool(server.steps("notifications/cancelled")))
        await server.until(lambda: len(server.opened) == len(server.ended))
        assert hub.parked.waiting == 0
        late = {**CALL, "requestState": first["requestState"]}
        assert (await web.ask("tools/call", late)).error["code"] == -32602
    assert len(server.steps("tools/call")) == 1
