"""What a server asks of a caller: by requests (legacy), by `input_required` (modern)."""

from typing import Any

import anyio
import pytest

from tests.mcp import fake
from tests.mcp.fake import Act, Fake, Seen
from tests.mcp.test_http_front import endpoint
from tests.mcp.test_relay import note
from tests.raw import Peer

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


def asks(method: str, params: Json, ident: Any = "q1") -> Act:
    """A request to the caller on the call's stream; the answer is what the caller said."""

    async def run(server: Fake, peer: Peer, seen: Seen) -> None:
        question = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
        await peer.send(fake.STREAM + fake.event(question))
        await server.until(lambda: any(said(item) == ident for item in server.seen))
        (reply,) = [item.message for item in server.seen if said(item) == ident]
        content = [{"type": "text", "text": repr(reply.get("result", reply.get("error")))}]
        await peer.send(fake.event(fake.answer(seen.id, {"content": content})))
        await peer.close()

    return run


def said(seen: Seen) -> Any:
    return None if "method" in seen.message else seen.message.get("id")


CAPABILITIES: Json = {"sampling": {}, "elicitation": {"form": {}}, "roots": {"listChanged": True}}


@pytest.mark.parametrize(
    "method, params",
    [
        ("sampling/createMessage", {"messages": [], "maxTokens": 1}),
        ("elicitation/create", {"message": "?", "requestedSchema": {"type": "object"}}),
        ("roots/list", {}),
    ],
)
@pytest.mark.parametrize("ident", ["q1", 7, 0])
async def test_what_a_server_asks_the_caller_answers(method: str, params: Json, ident: Any) -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open(CAPABILITIES)
        server.acts["tools/call"] = [asks(method, params, ident)]
        message = web.message("tools/call", {"name": "echo"})
        async with web.streaming(message) as stream:
            question = await stream.event()
            assert (question["method"], question["params"]) == (method, params)
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"said": [1.5, None]}}
            assert (await web.post(answer)).status == 202
            final = await stream.event()
    assert final["result"]["content"][0]["text"] == repr({"said": [1.5, None]})
    openings = [seen.message["params"] for seen in server.steps("initialize")]
    (opening,) = [params for params in openings if params["clientInfo"]["name"] == "web"]
    assert opening["capabilities"] == CAPABILITIES


async def test_a_callers_refusal_reaches_the_server() -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open(CAPABILITIES)
        server.acts["tools/call"] = [asks("sampling/createMessage", {})]
        async with web.streaming(web.message("tools/call", {"name": "echo"})) as stream:
            question = await stream.event()
            await web.post(fake.error(question["id"], -1, "the user said no"))
            final = await stream.event()
    assert "the user said no" in final["result"]["content"][0]["text"]


@pytest.mark.parametrize("capabilities", [{}, {"roots": {}}])
async def test_a_caller_is_asked_only_what_it_said_it_can_take(capabilities: Json) -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open(capabilities)
        server.acts["tools/call"] = [asks("sampling/createMessage", {})]
        got = await web.call("tools/call", {"name": "echo"})
    assert "-32601" in got.result["content"][0]["text"]
    assert len(got.messages) == 1


async def test_a_servers_ping_is_answered_by_the_proxy() -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open()
        server.acts["tools/call"] = [asks("ping", {})]
        got = await web.call("tools/call", {"name": "echo"})
    assert got.result["content"][0]["text"] == "{}"


async def test_a_question_withdrawn_is_withdrawn_from_the_caller() -> None:
    async def withdraws(server: Fake, peer: Peer, seen: Seen) -> None:
        question = {"jsonrpc": "2.0", "id": "q", "method": "roots/list"}
        await peer.send(fake.STREAM + fake.event(question))
        await asked.wait()
        await peer.send(fake.event(note("notifications/cancelled", {"requestId": "q"})))
        await withdrawn.wait()
        await peer.send(fake.event(fake.answer(seen.id, {"content": []})))
        await peer.close()

    server = Fake(eras=("legacy",))
    asked, withdrawn = anyio.Event(), anyio.Event()
    async with endpoint(server) as web:
        await web.open(CAPABILITIES)
        server.acts["tools/call"] = [withdraws]
        async with web.streaming(web.message("tools/call", {"name": "echo"})) as stream:
            question = await stream.event()
            asked.set()
            gone = await stream.event()
            assert gone["method"] == "notifications/cancelled"
            assert gone["params"]["requestId"] == question["id"]
            withdrawn.set()
            assert (await stream.event())["result"] == {"content": []}


async def test_an_input_a_modern_server_requires_is_asked_of_a_legacy_caller() -> None:
    state = "opaque \u00e9 state"

    async def requires(server: Fake, peer: Peer, seen: Seen) -> None:
        wanted = {"q": {"method": "elicitation/create", "params": {"message": "name?"}}}
        found = {"resultType": "input_required", "inputRequests": wanted, "requestState": state}
        await peer.send(fake.reply(200, fake.answer(seen.id, found)))

    server = Fake(eras=("modern",))
    async with endpoint(server) as web:
        await web.open(CAPABILITIES)
        server.acts["tools/call"] = [requires]
        async with web.streaming(web.message("tools/call", {"name": "echo"})) as stream:
            question = await stream.event()
            assert question["params"] == {"message": "name?"}
            result = {"action": "accept", "content": {"name": "x"}}
            await web.post({"jsonrpc": "2.0", "id": question["id"], "result": result})
            final = await stream.event()
    assert final["result"]["content"] == [{"type": "text", "text": "ok"}]
    first, second = server.steps("tools/call")
    assert second.id != first.id
    assert second.message["params"]["inputResponses"] == {"q": result}
    assert second.message["params"]["requestState"] == state


async def test_a_modern_caller_gets_input_required_as_it_is() -> None:
    required = {
        "resultType": "input_required",
        "inputRequests": {"q": {"method": "roots/list"}},
        "requestState": "s",
    }
    server = Fake(eras=("modern",), result=required)
    async with endpoint(server) as web:
        server.acts["tools/call"] = [
            lambda server, peer, seen: peer.send(fake.reply(200, fake.answer(seen.id, required)))
        ]
        got = await web.ask("tools/call", {"name": "echo"})
        assert got.result == required
        answers = {"inputResponses": {"q": {"roots": []}}, "requestState": "s"}
        await web.ask("tools/call", {"name": "echo", **answers})
    again = server.steps("tools/call")[1].message["params"]
    assert again["inputResponses"] == {"q": {"roots": []}}
    assert again["requestState"] == "s"


async def test_a_caller_that_takes_no_stream_is_asked_nothing() -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open(CAPABILITIES)
        server.acts["tools/call"] = [asks("roots/list", {})]
        got = await web.call("tools/call", {"name": "echo"}, {"Accept": "application/json"})
    assert "-32601" in got.result["content"][0]["text"]


@pytest.mark.parametrize("delivery", ["safe", "at-least-once"])
@pytest.mark.parametrize("refusal", [fake.says(503), fake.says(429)])
async def test_what_the_caller_was_asked_no_further_attempt_asks_again(
    refusal: Act, delivery: str
) -> None:
    server = Fake(eras=("modern",))
    wanted = {"q": {"method": "elicitation/create", "params": {"message": "?"}}}

    async def requires(fk: Fake, peer: Peer, seen: Seen) -> None:
        found = {"resultType": "input_required", "inputRequests": wanted, "requestState": "s"}
        await peer.send(fake.reply(200, fake.answer(seen.id, found)))

    async with endpoint(server, {"delivery": delivery}) as web:
        await web.open({"elicitation": {}})
        server.acts["tools/call"] = [requires, refusal, refusal]
        message = web.message("tools/call", {"name": "echo"})
        async with web.streaming(message) as stream:
            question = await stream.event()
            given = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}
            assert (await web.post(given)).status == 202
            final = await stream.event()
    assert final["result"]["content"][0]["text"] == "ok"
    first, *legs = [seen.message["params"] for seen in server.steps("tools/call")]
    assert "inputResponses" not in first
    assert [leg["inputResponses"] for leg in legs] == [{"q": {"action": "accept"}}] * 3
    assert [leg["requestState"] for leg in legs] == ["s"] * 3
