"""Case 15: a cancel answers whatever the agent still waits for, and tells it to stop."""

import json
import threading

import pytest

from tests.cases.conftest import Spawn
from tests.peers.agent import scripted
from tests.peers.processes import wait_until
from tests.peers.servers import tool_gate

OPTIONS = json.dumps(
    [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
)
ASK = f"oncancel ignore\npermission {OPTIONS}\nstop cancelled"
CANCELLED = {"outcome": {"outcome": "cancelled"}}


def test_an_open_permission_is_answered_cancelled(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.hello()
    turn = host.start(scripted(), f"say part\n{ASK}", permission="ask")
    host.event("permission")
    cancel = host.send("cancel")
    response = host.answer(turn, 5)
    assert (response["ok"], response["result"]["stop_reason"]) == (True, "cancelled")
    assert host.answer(cancel, 5) | {"id": cancel} == {"id": cancel, "ok": True, "result": {}}
    assert host.log.answer("agent-1")["result"] == CANCELLED
    assert host.log.methods().count("session/cancel") == 1
    assert host.reply(None, "say next") == "next"
    host.shutdown()


def test_several_open_requests_are_all_answered(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.hello()
    ask = f'ask session/request_permission {{"toolCall":{{"toolCallId":"t"}},"options":{OPTIONS}}}'
    prompt = f"oncancel ignore\n{ask}\n{ask}\npermission {OPTIONS}\nstop cancelled"
    turn = host.start(scripted(), prompt, permission="ask")
    host.wait(lambda: len(host.events("permission")) == 3)
    host.send("cancel")
    assert host.answer(turn, 5)["result"]["stop_reason"] == "cancelled"
    for number in (1, 2, 3):
        assert host.log.answer(f"agent-{number}")["result"] == CANCELLED
    host.shutdown()


def test_a_permission_asked_after_the_cancel_is_answered_too(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.hello()
    prompt = f"say up\nwait cancel\npermission {OPTIONS}\nstop cancelled"
    turn = host.start(scripted(), prompt, permission="ask")
    host.text_event("up")
    host.send("cancel")
    assert host.answer(turn, 5)["result"]["stop_reason"] == "cancelled"
    assert host.log.answer("agent-1")["result"] == CANCELLED
    assert host.events("permission") == []
    host.shutdown()


def test_an_answer_that_comes_too_late_is_refused_by_name(spawn: Spawn) -> None:
    host = spawn()
    host.hello()
    turn = host.start(scripted(), ASK, permission="ask")
    request = host.event("permission")["request_id"]
    host.send("cancel")
    host.answer(turn, 5)
    late = host.call("permission", request_id=request, outcome="allow")
    assert (late["ok"], late["code"]) == (False, "invalid_request")
    host.shutdown()


def test_an_open_elicitation_is_answered_too(spawn: Spawn) -> None:
    host = spawn()
    host.hello()
    ask = '{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}}}'
    prompt = f"oncancel ignore\nrequest elicitation/create {ask}\nstop cancelled"
    turn = host.start(scripted(), prompt, client_services=["elicitation"])
    host.event("elicitation")
    host.send("cancel")
    assert host.answer(turn, 5)["result"]["stop_reason"] == "cancelled"
    assert host.log.answer("agent-1")["result"]["action"] == "cancel"
    host.shutdown()


@pytest.mark.parametrize("generation", ["B", "C"])
def test_a_gate_that_is_still_thinking_holds_up_no_end(spawn: Spawn, generation: str) -> None:
    thinking = threading.Event()
    with tool_gate() as gate:
        gate.decide = lambda question: "allow" if thinking.wait(60) else "deny"
        host = spawn(generation=generation)
        turn = host.start(scripted(), ASK, tool_interception=gate.interception)
        try:
            assert wait_until(lambda: gate.asked)
            stop = host.send("cancel") if generation == "C" else host.send("shutdown")
            response = host.answer(turn, 10)
            assert (response["ok"], response["result"]["stop_reason"]) == (True, "cancelled")
            assert host.answer(stop, 10)["ok"] is True
        finally:
            thinking.set()
        if generation == "C":
            host.shutdown()


def test_a_turn_that_times_out_answers_them_as_well(spawn: Spawn) -> None:
    host = spawn()
    host.hello()
    response = host.prompt(scripted(), ASK, permission="ask", turn_timeout=0.5, seconds=8)
    assert (response["ok"], response["code"]) == (False, "timeout")
    assert host.log.answer("agent-1")["result"] == CANCELLED
    host.shutdown()
