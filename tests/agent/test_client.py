"""The client side of ACP: whose message it is, in which order, and what is held until then."""

from typing import Any

import anyio
import pytest

from bridge import log as log_module
from bridge.agent import client as module
from bridge.agent.client import AgentClient
from bridge.errors import RequestFailed
from bridge.rpc.connection import ConnectionEnded
from bridge.rpc.inbound import Inbound
from bridge.wire import codec
from tests.agent.wired import Session, Wired, update
from tests.rpc.pair import connected

pytestmark = pytest.mark.anyio


async def test_the_handshake_says_who_we_are_and_keeps_what_was_answered() -> None:
    async with Wired() as wired:
        answers: list[Any] = []

        async def initialize() -> None:
            answers.append(await wired.client.initialize(1, {"fs": {}}, {"name": "me"}))

        wired.tasks.start_soon(initialize)
        call = await wired.agent.heard()
        assert (call["method"], call["params"]) == (
            "initialize",
            {"protocolVersion": 1, "clientCapabilities": {"fs": {}}, "clientInfo": {"name": "me"}},
        )
        capabilities = {"loadSession": True, "sessionCapabilities": {"fork": {}, "close": None}}
        meta = {"steering": {"supported": True}}
        result = {"protocolVersion": 1, "agentCapabilities": capabilities, "_meta": meta}
        wired.agent.say({"id": call["id"], "result": result | {"unknown": [1]}})
        await wired.caught_up()
        can = wired.client.capabilities
        assert (can.load_session, can.session("fork")) == (True, True)
        assert not can.session("close")
        assert not can.session("list")
        assert answers[0].meta == meta
        assert wired.client.advertised == capabilities


@pytest.mark.parametrize("result", [None, [], "yes", {}, {"protocolVersion": "one"}])
async def test_a_handshake_of_another_shape_is_an_error(result: Any) -> None:
    async with Wired() as wired:
        failures: list[Exception] = []

        async def initialize() -> None:
            try:
                await wired.client.initialize(1, {}, {})
            except codec.JSONError as error:
                failures.append(error)

        wired.tasks.start_soon(initialize)
        call = await wired.agent.heard()
        wired.agent.say({"id": call["id"], "result": result})
        await wired.caught_up()
        assert len(failures) == 1


async def test_each_message_goes_to_its_session_in_wire_order() -> None:
    async with Wired() as wired:
        one, two = await wired.open("one"), await wired.open("two")
        wired.agent.say(
            update("one", "a"),
            update("two", "b"),
            {"id": 1, "method": "session/request_permission", "params": {"sessionId": "one"}},
            {"method": "_vendor/note", "params": {"sessionId": "one"}},
            update("one", "c"),
        )
        await wired.caught_up()
        assert one.came == ["a", "session/request_permission", "_vendor/note", "c"]
        assert two.came == ["b"]


async def test_what_came_early_is_handed_over_right_after_the_session_was_told_of() -> None:
    async with Wired() as wired:
        session = Session()
        wired.tasks.start_soon(wired.client.create, "session/new", {}, session, session.done)
        call = await wired.agent.heard()
        wired.agent.say(
            update("s", "early"),
            {"id": "p", "method": "session/request_permission", "params": {"sessionId": "s"}},
            {"method": "_vendor/note", "params": {"sessionId": "s"}},
            update("another", "no"),
            {"id": call["id"], "result": {"sessionId": "s"}},
            update("s", "late"),
        )
        await wired.caught_up()
        assert session.came == [
            ("done", {"sessionId": "s"}),
            "early",
            "session/request_permission",
            "_vendor/note",
            "late",
        ]
        assert (await wired.agent.heard())["result"] == "served"


async def test_early_messages_for_a_session_that_never_comes_are_refused_in_the_end() -> None:
    async with Wired() as wired:
        session = Session()
        wired.tasks.start_soon(wired.client.create, "session/new", {}, session, session.done)
        call = await wired.agent.heard()
        ask = {"id": 9, "method": "session/request_permission", "params": {"sessionId": "ghost"}}
        wired.agent.say(ask, {"id": call["id"], "result": {"sessionId": "s"}})
        refused = await wired.agent.heard()
        assert (refused["id"], refused["error"]["code"]) == (9, -32002)
        assert "ghost" in refused["error"]["message"]


async def test_an_agent_that_asks_before_it_answers_is_answered_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "EARLY_SECONDS", 0.01)
    async with Wired() as wired:
        session = Session()
        wired.tasks.start_soon(wired.client.create, "session/new", {}, session, session.done)
        call = await wired.agent.heard()
        ask = {"id": 9, "method": "session/request_permission", "params": {"sessionId": "s"}}
        wired.agent.say(update("s", "early"), ask)
        assert (await wired.agent.heard())["result"] == "served"
        wired.agent.say({"id": call["id"], "result": {"sessionId": "s"}})
        await wired.caught_up()
        assert session.came == [
            "session/request_permission",
            ("done", {"sessionId": "s"}),
            "early",
        ]
        assert (wired.client._early_bytes, len(wired.client._early)) == (0, 0)


async def test_a_request_that_may_be_another_sessions_is_refused_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "EARLY_SECONDS", 0.01)
    async with Wired() as wired:
        calls: list[Any] = []
        for session in (Session(), Session()):
            wired.tasks.start_soon(wired.client.create, "session/new", {}, session, session.done)
            calls.append((await wired.agent.heard())["id"])
        ask = {"id": 9, "method": "session/request_permission", "params": {"sessionId": "s"}}
        wired.agent.say(ask)
        refused = await wired.agent.heard()
        assert (refused["id"], refused["error"]["code"]) == (9, -32002)
        wired.agent.say(*({"id": call, "result": {"sessionId": str(call)}} for call in calls))
        await wired.caught_up()


async def test_two_sessions_in_the_making_get_each_their_own() -> None:
    async with Wired() as wired:
        one, two = Session(), Session()
        wired.tasks.start_soon(wired.client.create, "session/new", {}, one, one.done)
        first = await wired.agent.heard()
        wired.tasks.start_soon(wired.client.create, "session/new", {}, two, two.done)
        second = await wired.agent.heard()
        wired.agent.say(
            update("two", "for two"),
            update("one", "for one"),
            {"id": second["id"], "result": {"sessionId": "two"}},
            update("one", "more"),
            {"id": first["id"], "result": {"sessionId": "one"}},
        )
        await wired.caught_up()
        assert one.came[1:] == ["for one", "more"]
        assert two.came[1:] == ["for two"]


async def test_what_is_held_is_bounded_in_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EARLY_MESSAGES", 10)
    async with Wired() as wired:
        session = Session()
        wired.tasks.start_soon(wired.client.create, "session/new", {}, session, session.done)
        call = await wired.agent.heard()
        wired.agent.say(*(update("s", str(n)) for n in range(25)))
        await wired.caught_up()
        assert len(wired.client._early) == 10
        monkeypatch.setattr(module, "EARLY_BYTES", 300)
        wired.agent.say(update("s", "25"), {"id": call["id"], "result": {"sessionId": "s"}})
        await wired.caught_up()
        assert session.came[-1] == "25"
        assert 0 < len(session.came) - 1 < 10
        assert (wired.client._early_bytes, len(wired.client._early)) == (0, 0)


@pytest.mark.parametrize("result", [None, {}, {"sessionId": 7}, [], "s"])
async def test_a_session_without_an_id_is_a_failure(result: Any) -> None:
    async with Wired() as wired:
        failures: list[codec.JSONError] = []
        session = Session()

        async def create() -> None:
            try:
                await wired.client.create("session/new", {}, session, session.done)
            except codec.JSONError as error:
                failures.append(error)

        wired.tasks.start_soon(create)
        call = await wired.agent.heard()
        wired.agent.say({"id": call["id"], "result": result})
        await wired.caught_up()
        assert "sessionId" in str(failures[0])
        assert (session.came, wired.client.sessions) == ([], 0)


async def test_a_restored_session_gets_its_history_before_it_is_told_of() -> None:
    async with Wired() as wired:
        session = Session()
        params = {"sessionId": "old"}
        wired.tasks.start_soon(wired.client.restore, "session/load", params, session, session.done)
        call = await wired.agent.heard()
        replay, after = update("old", "replayed"), update("old", "after")
        wired.agent.say(replay, {"id": call["id"], "result": None}, after)
        await wired.caught_up()
        assert session.came == ["replayed", ("done", {}), "after"]


async def test_a_session_that_cannot_be_restored_is_forgotten() -> None:
    async with Wired() as wired:
        session = Session()
        failures: list[RequestFailed] = []

        async def restore() -> None:
            try:
                await wired.client.restore(
                    "session/load", {"sessionId": "old"}, session, session.done
                )
            except RequestFailed as error:
                failures.append(error)

        wired.tasks.start_soon(restore)
        call = await wired.agent.heard()
        wired.agent.say({"id": call["id"], "error": {"code": -32002, "message": "unknown"}})
        await wired.caught_up()
        wired.agent.say(update("old", "late"))
        await wired.caught_up()
        assert (failures[0].code, session.came, wired.client.sessions) == (-32002, [], 0)


async def test_an_opening_that_is_given_up_binds_nothing() -> None:
    async with Wired() as wired:
        session = Session()
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wired.client.create, "session/fork", {}, session, session.done)
                call = await wired.agent.heard()
                scope.cancel()
        taken_back = await wired.agent.heard()
        assert taken_back["params"] == {"requestId": call["id"]}
        wired.agent.say({"id": call["id"], "result": {"sessionId": "s"}}, update("s"))
        await wired.caught_up()
        assert (session.came, wired.client.sessions) == ([], 0)


async def test_the_end_of_the_agent_fails_what_is_being_opened() -> None:
    async with Wired() as wired:
        failures: list[ConnectionEnded] = []
        session = Session()

        async def create() -> None:
            try:
                await wired.client.create("session/new", {}, session, session.done)
            except ConnectionEnded as error:
                failures.append(error)

        wired.tasks.start_soon(create)
        await wired.agent.heard()
        wired.agent.leave()
        await wired.caught_up()
        assert str(failures[0]) == "the agent ended"


async def test_noise_is_logged_and_then_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[bytes] = []
    monkeypatch.setattr(log_module._handler, "sink", logged.append)
    async with Wired() as wired:
        wired.agent.write(*(b"noise %d" % n for n in range(300)))
        await wired.caught_up()
        assert wired.client.noise_lines == 300
    assert len(logged) == 101
    assert b"noise 0" in logged[0]
    assert b"silently" in logged[-1]


async def test_the_reader_asks_for_room_between_reads() -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        asked: list[bool] = []

        async def room() -> None:
            asked.append(True)

        client = AgentClient(connection, Inbound(connection, tasks), name="", room=room)
        peer.say(update("s"))
        peer.leave()
        await connection.run(client)
        assert asked
