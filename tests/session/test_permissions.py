"""Permission requests: each answered once, with an option chosen by kind, told in wire order."""

from contextlib import AsyncExitStack
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from bridge.errors import BridgeError
from bridge.rpc.inbound import Inbound
from bridge.session import permissions as module
from bridge.session.permissions import Permissions, gate_call
from bridge.wire.jsonrpc import Notification, Request
from protocol_schemas.host import SelectedOption
from tests.rpc.pair import Peer, Recorder, connected

pytestmark = pytest.mark.anyio

YES = {"optionId": "y", "kind": "allow_once", "name": "Yes", "_meta": {"n": 1.0}}
ALWAYS = {"optionId": "always", "kind": "allow_always", "name": "Always"}
NO = {"optionId": "n", "kind": "reject_once", "name": "No"}
NEVER = {"optionId": "never", "kind": "reject_always", "name": "Never"}
ODD = {"optionId": "odd", "kind": "ask_again", "name": "?"}
CALL = {"toolCallId": "call-1", "title": "run", "rawInput": {"a": 1}}
CANCELLED = {"outcome": {"outcome": "cancelled"}}


def selected(option_id: object) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


class Asking:
    """An agent that asks, and the permissions that answer it."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.told: list[Any] = []
        self.stops = 0
        self.noted: list[Any] = []
        self.permissions = Permissions(
            ask_host=self.told.append,
            stop=self._stop,
            note=lambda kind, data: self.noted.append((kind, data)),
        )
        self.inbound: Inbound
        self._count = 0

    def _stop(self) -> None:
        self.stops += 1
        self.permissions.cancel_all()

    def ask(self, *options: dict[str, Any], call: Any = None, ident: Any = None) -> int:
        self._count += 1
        ident = self._count if ident is None else ident
        params = {"sessionId": "s", "toolCall": call or CALL, "options": list(options)}
        self.peer.say({"id": ident, "method": "session/request_permission", "params": params})
        return ident

    async def outcome(self) -> Any:
        return (await self.peer.heard())["result"]


class Reading(Recorder):
    def __init__(self, asking: Asking, connection: Any, inbound: Inbound) -> None:
        super().__init__()
        self.asking, self.connection, self.inbound = asking, connection, inbound

    def request(self, request: Request) -> None:
        self.asking.permissions.take(request, self.connection, self.inbound)

    def notification(self, notification: Notification) -> None:
        if notification.method == "$/cancel_request":
            self.inbound.cancel(notification)
        else:
            self.asking.told.append(notification.method)


class Wired:
    async def __aenter__(self) -> Asking:
        self._stack = AsyncExitStack()
        connection, peer = await self._stack.enter_async_context(connected())
        tasks = await self._stack.enter_async_context(anyio.create_task_group())
        asking = Asking(peer)
        asking.inbound = Inbound(connection, tasks)
        self._peer, self._inbound = peer, asking.inbound
        tasks.start_soon(connection.run, Reading(asking, connection, asking.inbound))
        return asking

    async def __aexit__(self, *failure: Any) -> None:
        self._inbound.cancel_all()
        self._peer.leave()
        await self._stack.__aexit__(*failure)


@pytest.mark.parametrize(
    ("policy", "options", "answer"),
    [
        ("allow", [YES, NO], selected("y")),
        ("allow", [ALWAYS, YES, NO], selected("y")),
        ("allow", [NO, ALWAYS], selected("always")),
        ("allow", [NO, NEVER], CANCELLED),
        ("allow", [ODD], CANCELLED),
        ("allow", [], CANCELLED),
        ("deny", [YES, NEVER, NO], selected("n")),
        ("deny", [YES, NEVER], selected("never")),
        ("deny", [YES], CANCELLED),
        ("allow", [{"optionId": 42, "kind": "allow_once"}], selected(42)),
        ("allow", [{"optionId": "42", "kind": "allow_once"}], selected("42")),
        ("allow", [{"optionId": "deny_always", "kind": "allow_once"}], selected("deny_always")),
        ("allow", [{"optionId": "a b é", "kind": "allow_once", "name": "No"}], selected("a b é")),
    ],
)
async def test_a_policy_answers_at_once_by_kind(
    policy: Any, options: list[Any], answer: Any
) -> None:
    async with Wired() as agent:
        agent.permissions.policy = policy
        agent.ask(*options)
        assert await agent.outcome() == answer
        assert agent.told == []


@pytest.mark.parametrize(
    "params", [None, [], {}, {"sessionId": "s"}, {"sessionId": "s", "toolCall": 1, "options": []}]
)
async def test_a_request_of_another_shape_is_refused(params: Any) -> None:
    async with Wired() as agent:
        agent.peer.say({"id": "x", "method": "session/request_permission", "params": params})
        refused = await agent.peer.heard()
        assert (refused["id"], refused["error"]["code"]) == ("x", -32602)


@pytest.mark.parametrize(
    ("outcome", "answer"),
    [
        (SelectedOption("always"), selected("always")),
        (SelectedOption("n"), selected("n")),
        ("allow", selected("y")),
        ("deny", selected("n")),
        ("cancel", CANCELLED),
    ],
)
async def test_the_host_decides_when_it_is_asked(outcome: Any, answer: Any) -> None:
    async with Wired() as agent:
        agent.permissions.policy = "ask"
        agent.ask(ALWAYS, YES, NO)
        await anyio.wait_all_tasks_blocked()
        (told,) = agent.told
        assert told["tool_call"] == CALL
        assert told["options"] == [ALWAYS, YES, NO]
        assert agent.permissions.waiting
        agent.permissions.answer(told["request_id"], outcome)
        assert await agent.outcome() == answer
        assert not agent.permissions.waiting
        with pytest.raises(BridgeError, match=told["request_id"]):
            agent.permissions.answer(told["request_id"], outcome)


async def test_an_answer_that_fits_nothing_leaves_the_request_open() -> None:
    async with Wired() as agent:
        agent.permissions.policy = "ask"
        agent.ask(YES, NO)
        await anyio.wait_all_tasks_blocked()
        key = agent.told[0]["request_id"]
        for request_id, outcome in (("permission-99", "allow"), (key, SelectedOption("z"))):
            with pytest.raises(BridgeError) as caught:
                agent.permissions.answer(request_id, outcome)
            assert caught.value.code == "invalid_request"
        assert "['y', 'n']" in str(caught.value)
        agent.permissions.answer(key, "allow")
        assert await agent.outcome() == selected("y")


async def test_a_second_answer_in_the_same_moment_is_refused() -> None:
    async with Wired() as agent:
        agent.permissions.policy = "ask"
        agent.ask(YES, NO)
        await anyio.wait_all_tasks_blocked()
        key = agent.told[0]["request_id"]
        agent.permissions.answer(key, "allow")
        with pytest.raises(BridgeError):
            agent.permissions.answer(key, "deny")
        assert await agent.outcome() == selected("y")


async def test_requests_are_told_in_wire_order_among_all_that_comes() -> None:
    async with Wired() as agent:
        agent.permissions.policy = "ask"
        agent.peer.say({"method": "before"})
        agent.ask(YES)
        agent.peer.say({"method": "between"})
        agent.ask(NO)
        agent.peer.say({"method": "after"})
        await anyio.wait_all_tasks_blocked()
        told = [item if isinstance(item, str) else item["request_id"] for item in agent.told]
        assert told[0::2] == ["before", "between", "after"]
        for key in reversed(told[1::2]):
            agent.permissions.answer(key, "cancel")
        assert {(await agent.peer.heard())["id"] for _ in range(2)} == {1, 2}


async def test_a_host_that_does_not_answer_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HOST_TIMEOUT", 0.01)
    async with Wired() as agent:
        agent.permissions.policy = "ask"
        agent.ask(YES, NO)
        assert await agent.outcome() == selected("n")
        with pytest.raises(BridgeError):
            agent.permissions.answer(agent.told[0]["request_id"], "allow")


async def test_a_stop_answers_what_is_open_and_what_comes_until_it_is_over() -> None:
    async with Wired() as agent:
        agent.permissions.policy = "ask"
        agent.ask(YES)
        agent.ask(YES)
        await anyio.wait_all_tasks_blocked()
        agent.permissions.cancel_all()
        agent.ask(YES)
        answers = [await agent.outcome() for _ in range(3)]
        assert answers == [CANCELLED] * 3
        assert len(agent.told) == 2
        agent.permissions.stopping = False
        agent.permissions.policy = "allow"
        agent.ask(YES)
        assert await agent.outcome() == selected("y")


async def test_a_request_the_agent_takes_back_is_answered_as_cancelled() -> None:
    async with Wired() as agent:
        agent.permissions.policy = "ask"
        ident = agent.ask(YES)
        agent.peer.say({"method": "$/cancel_request", "params": {"requestId": ident}})
        answer = await agent.peer.heard()
        assert (answer["id"], answer["error"]["code"]) == (ident, -32800)
        with pytest.raises(BridgeError):
            agent.permissions.answer(agent.told[0]["request_id"], "allow")


async def test_an_id_that_is_open_is_refused_and_not_told() -> None:
    async with Wired() as agent:
        agent.permissions.policy = "ask"
        agent.ask(YES, ident="same")
        agent.ask(NO, ident="same")
        assert (await agent.peer.heard())["error"]["code"] == -32600
        assert len(agent.told) == 1
        agent.permissions.answer(agent.told[0]["request_id"], "allow")
        assert await agent.outcome() == selected("y")


class Verdict:
    """A gate without a wire."""

    interception = None

    def __init__(self, *verdicts: Any) -> None:
        self.verdicts = list(verdicts)
        self.asked: list[Any] = []

    async def verdict(self, tool_call_id: str, arguments: Any) -> Any:
        self.asked.append((tool_call_id, arguments))
        verdict = self.verdicts.pop(0)
        if verdict == "wait":
            await anyio.sleep_forever()
        return verdict

    def close(self) -> None:
        pass


def gated(agent: Asking, *verdicts: Any) -> Verdict:
    gate = Verdict(*verdicts)
    agent.permissions.gate = gate  # pyright: ignore
    return gate


@pytest.mark.parametrize(
    ("verdict", "answer"), [("allow", selected("y")), ("deny", selected("n")), ("stop", CANCELLED)]
)
async def test_a_gate_decides_before_any_policy(verdict: str, answer: Any) -> None:
    async with Wired() as agent:
        agent.permissions.policy = "ask"
        gate = gated(agent, verdict)
        agent.ask(ALWAYS, YES, NO)
        assert await agent.outcome() == answer
        assert gate.asked == [("call-1", {"a": 1})]
        assert agent.stops == (verdict == "stop")
        assert agent.told == []


async def test_after_a_stop_the_gate_is_not_asked_again() -> None:
    async with Wired() as agent:
        gate = gated(agent, "wait", "stop")
        agent.ask(YES)
        await anyio.wait_all_tasks_blocked()
        agent.ask(YES)
        answers = [await agent.outcome() for _ in range(2)]
        agent.ask(YES)
        answers.append(await agent.outcome())
        assert answers == [CANCELLED] * 3
        assert len(gate.asked) == 2
        assert agent.stops == 1


async def test_a_gate_may_take_its_time_over_one_and_not_the_other() -> None:
    async with Wired() as agent:
        gated(agent, "wait", "allow")
        agent.ask(YES)
        await anyio.wait_all_tasks_blocked()
        second = agent.ask(YES)
        answer = await agent.peer.heard()
        assert (answer["id"], answer["result"]) == (second, selected("y"))
        assert agent.permissions.waiting


async def test_each_decision_is_noted_with_who_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Wired() as agent:
        agent.ask(YES, NO, ident="by-policy")
        await agent.outcome()
        agent.permissions.policy = "ask"
        agent.ask(YES, NO, ident=7)
        while not agent.told:
            await anyio.lowlevel.checkpoint()
        agent.permissions.answer(agent.told[-1]["request_id"], "deny")
        await agent.outcome()
        agent.ask(YES, ident="taken-back")
        agent.peer.say({"method": "$/cancel_request", "params": {"requestId": "taken-back"}})
        await agent.peer.heard()
        monkeypatch.setattr(module, "HOST_TIMEOUT", 0.01)
        agent.ask(YES, NO, ident="late")
        await agent.outcome()
        gated(agent, "allow")
        agent.ask(YES, ident="gated")
        await agent.outcome()
        agent.permissions.cancel_all()
        agent.ask(YES, ident="stopped")
        await agent.outcome()
    assert {kind for kind, _ in agent.noted} == {"permission"}
    assert [(data["request"], data["by"], data["option"]) for _, data in agent.noted] == [
        ("by-policy", "policy", "y"),
        (7, "host", "n"),
        ("taken-back", "withdrawn", None),
        ("late", "timeout", "n"),
        ("gated", "gate", "y"),
        ("stopped", "stop", None),
    ]
    first = agent.noted[0][1]
    assert first["options"] == [
        {"optionId": "y", "kind": "allow_once"},
        {"optionId": "n", "kind": "reject_once"},
    ]
    assert (first["tool_call"], first["title"], first["seconds"]) == ("call-1", "run", 0)
    assert agent.noted[3][1]["seconds"] >= 0.01


def wrapped(title: Any = "real", message: Any = '{"a":[1]}', **more: Any) -> dict[str, Any]:
    raw = {"method": "confirm", "title": title, "message": message}
    return {"toolCallId": "pi-ui-7", "rawInput": raw | more}


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        ({"toolCallId": "x", "rawInput": {"a": 1}}, ("x", {"a": 1})),
        ({"toolCallId": "x"}, ("x", None)),
        ({"toolCallId": "x", "rawInput": [1]}, ("x", [1])),
        ({}, ("", None)),
        (wrapped(), ("real", {"a": [1]})),
        (wrapped(message='"text"'), ("real", "text")),
        (wrapped(message='{"odd":"\\ud83d"}'), ("real", {"odd": "\ud83d"})),
        (wrapped(message="not json"), None),
        (wrapped(message="\ud83d"), None),
        (wrapped(message=7), None),
        (wrapped(title=None), None),
        (
            {"toolCallId": "pi-ui-7", "rawInput": {"method": "select"}},
            ("pi-ui-7", {"method": "select"}),
        ),
        (
            {"toolCallId": "x-pi-ui-", "rawInput": {"method": "confirm"}},
            ("x-pi-ui-", {"method": "confirm"}),
        ),
    ],
)
def test_what_a_gate_is_asked_about(call: dict[str, Any], asked: Any) -> None:
    assert gate_call(call) == asked


async def test_a_wrapped_call_that_cannot_be_read_is_denied_unasked() -> None:
    async with Wired() as agent:
        gate = gated(agent)
        agent.ask(YES, NO, call=wrapped(message="not json"))
        assert await agent.outcome() == selected("n")
        assert gate.asked == []
