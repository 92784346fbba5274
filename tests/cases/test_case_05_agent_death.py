"""Case 05: an agent that dies ends everything that waited for it, by name and at once."""

import os
import signal

import pytest

from tests.cases.conftest import Spawn
from tests.peers.agent import scripted
from tests.peers.processes import alive, wait_until

SOON = 5.0


@pytest.mark.parametrize(
    ("end", "named"),
    [("exit 3", "3"), ("kill", "SIGKILL"), ("exit 0", "0"), ("half", "0")],
)
def test_a_death_in_mid_turn_keeps_what_came(
    spawn: Spawn, talk: dict[str, str], end: str, named: str
) -> None:
    host = spawn(**talk)
    response = host.prompt(scripted(), f"say part\n{end}", seconds=SOON)
    assert response["ok"] is False
    assert named in response["error"]
    if host.generation != "A":
        assert response["result"] == {
            "reply": "part",
            "stop_reason": None,
            "response_metadata": {},
            "update_metadata": [],
        }
    again = host.prompt(scripted(), "say more", seconds=SOON)
    assert again["ok"] is False
    host.shutdown()
    assert host.log.methods().count("session/prompt") == 1


@pytest.mark.parametrize(("end", "field"), [("exit 3", "exit_code"), ("kill", "signal")])
def test_the_native_error_says_how_and_shows_stderr(
    spawn: Spawn, loop: str, end: str, field: str
) -> None:
    host = spawn("--loop", loop)
    host.hello()
    response = host.prompt(scripted(), f"stderr 100\nsay part\n{end}", seconds=SOON)
    assert (response["code"], response["origin"]) == ("agent_exited", "agent")
    expected = {"exit_code": 3, "signal": "SIGKILL"}
    assert response[field] == expected[field]
    assert "eeee" in response["stderr"]
    assert host.event("exit", SOON)[field] == expected[field]
    host.shutdown()


def test_everything_that_waited_for_the_agent_fails(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    agent = scripted("set_mode=silent", "modes=1")
    assert host.call("open", config={"command": agent})["ok"] is True
    waiting = host.send("set_mode", mode_id="ask")
    first = host.start(None, "say part\nwait go\nexit 3")
    second = host.start(None, "say never")
    (host.log.path.parent / "go").touch()
    for request in (waiting, first, second):
        response = host.answer(request, SOON)
        assert response["ok"] is False
        assert response["code"] == "agent_exited"
    host.shutdown()


def test_another_session_goes_on_and_the_dead_one_can_be_opened_again(spawn: Spawn) -> None:
    host = spawn()
    dead = host.start(scripted(), "exit 3", session="dead")
    alive = host.start(scripted(), "wait go\nsay alive", session="alive")
    assert host.answer(dead, SOON)["code"] == "agent_exited"
    again = host.answer(host.start(None, "say no", session="dead"), SOON)
    assert again["code"] == "agent_exited"
    opened = host.call("open", session="dead", config={"command": scripted()})
    assert opened["ok"] is True
    reborn = host.answer(host.start(None, "say reborn", session="dead"))
    assert reborn["result"]["reply"] == "reborn"
    (host.log.path.parent / "go").touch()
    assert host.answer(alive)["result"]["reply"] == "alive"
    host.shutdown()


@pytest.mark.parametrize("command", ["exit 3", "kill -9 $$", "read line; exit 3"])
def test_a_death_at_start_is_named(spawn: Spawn, command: str) -> None:
    host = spawn()
    script = f"echo last words >&2; {command}"
    response = host.prompt(["sh", "-c", script], "hi", seconds=SOON)
    assert response["ok"] is False
    assert ("SIGKILL" if "kill" in command else "3") in response["error"]
    assert "last words" in response["stderr"]
    host.shutdown()


def test_a_death_between_turns_is_told_by_the_next_request(spawn: Spawn) -> None:
    host = spawn()
    host.hello()
    assert host.reply(scripted(), "pid").isdigit()

    os.kill(int(host.frames[-1]["result"]["reply"]), signal.SIGKILL)
    assert host.event("exit", SOON)["signal"] == "SIGKILL"
    assert host.prompt(None, "say no", seconds=SOON)["code"] == "agent_exited"
    host.shutdown()


def test_a_closed_stdout_is_a_broken_protocol(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    pid = int(host.reply(scripted(), "pid"))
    response = host.prompt(None, "say part\neof", seconds=15)
    assert (response["ok"], response["code"]) == (False, "protocol")
    assert response["result"]["reply"] == "part"
    assert wait_until(lambda: not alive(pid), SOON)
    host.shutdown()
