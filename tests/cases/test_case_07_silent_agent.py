"""Case 07: an agent that never answers costs a deadline, not a daemon."""

import pytest

from tests.cases.conftest import Spawn
from tests.peers.agent import scripted

SOON = 6.0


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "cat > /dev/null"],
        ["sh", "-c", "sleep 600 & sleep 600"],
        ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"],
        scripted("initialize=silent"),
        scripted("new=silent"),
        scripted("initialize=silent", "eof=ignore", "term=ignore", "spawn=deaf"),
        scripted("initialize=silent", f"start={(b'noise' * 20 + bytes([10])).hex()}"),
    ],
    ids=["cat", "children", "deaf shell", "initialize", "new", "deaf family", "noisy"],
)
def test_the_start_has_a_deadline(spawn: Spawn, loop: str, command: list[str]) -> None:
    host = spawn("--loop", loop)
    response = host.prompt(command, "hi", start_timeout=0.5, close_grace=0.5, seconds=SOON)
    assert response["ok"] is False
    assert response["code"] == "timeout"
    assert "0.5" in response["error"]
    host.shutdown()


@pytest.mark.parametrize("operation", ["load", "resume"])
def test_restoring_a_session_has_it_too(spawn: Spawn, operation: str) -> None:
    host = spawn()
    config = {"command": scripted(f"{operation}=silent"), "start_timeout": 0.5}
    response = host.call(operation, SOON, config=config, session_id="s-1")
    assert (response["ok"], response["code"]) == (False, "timeout")
    assert "session/new" not in host.log.methods()
    host.shutdown()


def test_a_turn_has_a_deadline_when_asked_for(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    response = host.prompt(scripted(), "say part\nwait cancel", turn_timeout=0.5, seconds=SOON)
    assert (response["ok"], response["code"]) == (False, "timeout")
    assert response["result"]["reply"] == "part"
    assert host.log.methods().count("session/cancel") == 1
    assert host.reply(None, "say next") == "next"
    host.shutdown()


def test_a_turn_that_ignores_its_cancel_ends_with_its_agent(spawn: Spawn) -> None:
    host = spawn()
    limits = {"turn_timeout": 0.3, "close_grace": 0.3}
    response = host.prompt(scripted("term=ignore"), "say part\nhang", seconds=SOON, **limits)
    assert (response["ok"], response["code"]) == (False, "timeout")
    assert response["result"]["reply"] == "part"
    assert host.prompt(None, "say no")["code"] == "agent_exited"
    host.shutdown()


def test_silence_in_a_turn_has_one_when_asked_for(spawn: Spawn) -> None:
    host = spawn()
    response = host.prompt(scripted(), "say part\nwait cancel", idle_timeout=0.5, seconds=SOON)
    assert (response["ok"], response["code"]) == (False, "timeout")
    host.shutdown()


def test_a_close_that_is_never_answered_still_closes(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    agent = scripted("close=silent", "eof=ignore", "term=ignore")
    assert host.reply(agent, "say hi", close_grace=0.3) == "hi"
    assert host.call("close", 9)["ok"] is True
    host.shutdown()


@pytest.mark.parametrize("command", [["/no/such/agent"], ["./here/neither"], [""]])
def test_what_cannot_be_started_is_named_at_once(
    spawn: Spawn, talk: dict[str, str], command: list[str]
) -> None:
    host = spawn(**talk)
    response = host.prompt(command, "hi", seconds=SOON)
    assert response["ok"] is False
    assert command[0] in response["error"]
    if host.generation == "C":
        assert response["code"] in ("spawn_failed", "invalid_request")
    host.shutdown()
