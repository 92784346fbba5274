"""Case 17: a turn that was stopped is reported as stopped, whatever its agent calls it."""

import json

import pytest

from tests.cases.conftest import Spawn
from tests.peers.agent import scripted
from tests.peers.servers import tool_gate

NOTHING_USED = 'result {"usage":{"totalTokens":0,"inputTokens":0,"outputTokens":0}}'
OPTIONS = json.dumps([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}])


@pytest.mark.parametrize("reason", ["end_turn", "cancelled", "refusal", "_odd"])
def test_a_cancelled_turn_is_cancelled(spawn: Spawn, loop: str, reason: str) -> None:
    host = spawn("--loop", loop)
    host.hello()
    turn = host.start(scripted(), f"{NOTHING_USED}\nstop {reason}\nsay part\nwait cancel")
    host.text_event("part")
    host.call("cancel")
    response = host.answer(turn, 5)
    assert response["ok"] is True
    assert response["result"]["stop_reason"] == "cancelled"
    assert response["result"]["reply"] == "part"
    assert response["agent_stop_reason"] == reason
    assert response["outcome"] == "cancelled"
    assert not response.get("usage")
    assert host.reply(None, "say next") == "next"
    host.shutdown()


def test_an_error_for_a_cancelled_turn_is_a_cancelled_turn(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.hello()
    error = '{"code":-32800,"message":"Request cancelled"}'
    turn = host.start(scripted(), f"error {error}\nsay part\nwait cancel")
    host.text_event("part")
    host.call("cancel")
    response = host.answer(turn, 5)
    assert (response["ok"], response["result"]["stop_reason"]) == (True, "cancelled")
    host.shutdown()


def test_an_agent_deaf_to_cancels_ends_with_the_turn(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.hello()
    turn = host.start(scripted("term=ignore", "eof=ignore"), "say part\nhang", close_grace=0.3)
    host.text_event("part")
    cancel = host.send("cancel")
    response = host.answer(turn, 8)
    assert (response["ok"], response["result"]["stop_reason"]) == (True, "cancelled")
    assert host.answer(cancel, 8)["ok"] is True
    assert host.prompt(None, "say no")["code"] == "agent_exited"
    host.shutdown()


def test_a_turn_past_its_deadline_is_a_timeout(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    prompt = f"{NOTHING_USED}\nsay part\nwait cancel"
    response = host.prompt(scripted(), prompt, turn_timeout=0.3, seconds=8)
    assert (response["ok"], response["code"], response["outcome"]) == (False, "timeout", "timeout")
    assert response["agent_stop_reason"] == "end_turn"
    assert response["result"]["reply"] == "part"
    assert not response.get("usage")
    host.shutdown()


@pytest.mark.parametrize("generation", ["B", "C"])
def test_a_turn_that_the_gate_stopped_is_cancelled(spawn: Spawn, generation: str) -> None:
    with tool_gate() as gate:
        gate.decide = lambda question: "stop"
        host = spawn(generation=generation)
        prompt = f"say part\noncancel ignore\npermission {OPTIONS}\nwait cancel\nbatch\nlate LATE"
        response = host.prompt(scripted(), prompt, tool_interception=gate.interception, seconds=8)
        assert (response["ok"], response["result"]["stop_reason"]) == (True, "cancelled")
        assert host.reply(scripted(), "say next", tool_interception=gate.interception) == "next"
        host.shutdown()


def test_late_text_of_a_cancelled_turn_does_not_reach_the_next(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.hello()
    turn = host.start(scripted(), "say part\nwait cancel\nbatch\nsay FROM-TURN-1\nlate TOO")
    host.text_event("part")
    host.send("cancel")
    following = host.start(None, "say two")
    assert host.answer(turn, 5)["result"]["stop_reason"] == "cancelled"
    assert host.answer(following, 5)["result"]["reply"] == "two"
    host.shutdown()


def test_a_cancel_with_nothing_running_changes_nothing(spawn: Spawn) -> None:
    host = spawn()
    assert host.reply(scripted(), "say one") == "one"
    assert host.call("cancel", 5)["ok"] is True
    assert host.reply(None, "say two") == "two"
    host.shutdown()
    assert "session/cancel" not in host.log.methods()


def test_a_second_cancel_is_not_sent_again(spawn: Spawn) -> None:
    host = spawn()
    host.hello()
    turn = host.start(scripted(), "say part\nwait cancel\nwait go\nstop cancelled")
    host.text_event("part")
    cancels = [host.send("cancel"), host.send("cancel")]
    (host.log.path.parent / "go").touch()
    assert host.answer(turn, 5)["result"]["stop_reason"] == "cancelled"
    assert [host.answer(cancel, 5)["ok"] for cancel in cancels] == [True, True]
    host.shutdown()
    assert host.log.methods().count("session/cancel") == 1
