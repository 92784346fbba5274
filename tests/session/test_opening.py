"""Openings on the real daemon: bounded, told before all else, nothing left of a failed one."""

import json
from types import SimpleNamespace

import pytest

from bridge.session import opening
from protocol_schemas.host import Config
from tests.peers.agent import scripted
from tests.peers.host import Host
from tests.peers.processes import alive, wait_until
from tests.session.room import SOON, Room


@pytest.mark.parametrize("silent", ["initialize", "new"])
def test_an_agent_that_is_not_ready_in_time_is_stopped(room: Room, silent: str) -> None:
    config = room.config(f"{silent}=silent", "eof=ignore", "term=ignore", start_timeout=0.4)
    response = room.call("open", SOON, config=config)
    assert (response["ok"], response["code"], response["origin"]) == (False, "timeout", "agent")
    assert "0.4 s (start_timeout)" in response["error"]
    pid = room.log.records()[0]["pid"]
    assert wait_until(lambda: not alive(pid), 5)
    assert room.open()["session_id"] == "s"


def test_a_prompt_s_opening_is_bounded_too(room: Room) -> None:
    config = room.config("new=silent", start_timeout=0.4)
    response = room.prompt("say no", seconds=SOON, **config)
    assert (response["code"], response["result"]["reply"]) == ("timeout", "")
    assert room.log.prompts() == []


@pytest.mark.parametrize(
    ("option", "code", "words"),
    [
        ("initialize=error:-32603:no way", "agent_error", "no way"),
        ("new=error:-32603:no room", "agent_error", "no room"),
        ('new={"nothing":1}', "protocol", "session/new cannot be read: it has no sessionId"),
        ("version=2", "unsupported", "version 2"),
        ('initialize={"protocolVersion":"x"}', "protocol", "initialize"),
        ("initialize=raw:{}", "timeout", "start_timeout"),
    ],
)
def test_an_opening_that_fails_is_named_and_leaves_no_agent(
    room: Room, option: str, code: str, words: str
) -> None:
    response = room.call("open", SOON, config=room.config(option, start_timeout=1))
    assert (response["ok"], response["code"]) == (False, code), response
    assert words in response["error"]
    pid = room.log.records()[0]["pid"]
    assert wait_until(lambda: not alive(pid), 5)
    assert room.ok("status")["sessions"][room.name]["agent_pid"] is None


@pytest.mark.parametrize(
    ("command", "words"),
    [([], "config.command"), (["/no/such/agent"], "/no/such/agent"), (["sh", "\0"], "NUL")],
)
def test_a_command_that_cannot_be_started(room: Room, command: list[str], words: str) -> None:
    response = room.call("open", config={"command": command})
    assert response["code"] == ("spawn_failed" if command else "invalid_request")
    assert words in response["error"]


def test_a_directory_that_is_not_there_is_named(room: Room) -> None:
    response = room.call("open", config=room.config(cwd="/no/such/place"))
    assert response["code"] == "spawn_failed"
    assert "/no/such/place" in response["error"]


def test_an_agent_that_dies_at_its_start_is_named_with_its_last_words(room: Room) -> None:
    config = {"command": ["sh", "-c", "echo last words >&2; exit 7"]}
    response = room.call("open", SOON, config=config)
    assert (response["code"], response["exit_code"]) == ("agent_exited", 7)
    assert response["stderr"] == "last words\n"


def test_another_protocol_version_is_not_spoken_with_agents(room: Room) -> None:
    words = room.refused("open", "unsupported", config=room.config(protocol_version=3))
    assert "3" in words
    assert room.log.methods() == []


def test_the_answer_to_an_opening_precedes_all_that_the_session_says(room: Room) -> None:
    room.open("early=3")
    room.wait(lambda: len(room.events("update")) == 3)
    frames = [f for f in room.frames() if f.get("event") in (None, "update")]
    assert ["event" in frame for frame in frames] == [False, True, True, True]
    assert [f["update"]["index"] for f in frames[1:]] == [0, 1, 2]


@pytest.mark.parametrize(("operation", "capability"), [("resume", "resume"), ("load", "load")])
def test_restoring_needs_the_agent_s_word(room: Room, operation: str, capability: str) -> None:
    config = room.config(f"without={capability}")
    room.refused(operation, "unsupported", session_id="old", config=config)
    assert room.log.methods() == ["initialize"]
    assert room.open()["session_id"] == "s"


def test_a_resumed_session_needs_no_replay_and_no_system_prompt(room: Room) -> None:
    config = room.config(system_prompt="be nice")
    result = room.ok("resume", session_id="old", config=config)
    assert result["session_id"] == "old"
    assert room.reply("dump", system_prompt="be nice") == '[{"type": "text", "text": "dump"}]'
    assert room.log.methods() == ["initialize", "session/resume", "session/prompt"]


def test_a_loaded_history_is_marked_and_no_output(room: Room) -> None:
    result = room.ok("load", session_id="old", config=room.config("replay=old words"))
    assert result["session_id"] == "old"
    replayed = room.events("update")
    assert [event["replay"] for event in replayed] == [True] * 3
    assert {event["turn"] for event in replayed} == {None}
    frames = room.frames()
    answer = next(frame for frame in frames if "event" not in frame)
    assert all(frames.index(event) < frames.index(answer) for event in replayed)
    response = room.prompt("say new")
    assert response["result"]["reply"] == "new"
    assert not [e for e in room.events("update") if e["turn"] == 1 and "replay" in e]


@pytest.mark.parametrize("code", [-32002, -32603])
def test_a_session_that_cannot_be_restored(room: Room, code: int) -> None:
    response = room.call(
        "load", session_id="gone", config=room.config(f"load=error:{code}:no such thing")
    )
    assert (response["code"], response["agent_code"]) == ("session_not_found", code)
    assert "gone" in response["error"]
    assert "no such thing" in response["error"]
    assert room.log.methods() == ["initialize", "session/load"]
    assert room.ok("status")["sessions"][room.name]["state"] == "new"
    assert room.open()["session_id"] == "s"


def test_a_fork_inherits_the_settings_of_its_source(daemon: Host, room: Room) -> None:
    room.open(permission="deny", cwd=str(room.directory))
    branch = f"{room.name}-branch"
    room.ok("fork", new_session=branch, cwd="/")
    (fork,) = room.log.messages("session/fork")
    assert (fork["params"]["sessionId"], fork["params"]["cwd"]) == ("s", "/")
    options = [{"optionId": "n", "kind": "reject_once", "name": "n"}]
    answer = daemon.answer(daemon.start(None, f"permission {json.dumps(options)}", session=branch))
    assert '"n"' in answer["result"]["reply"]
    daemon.call("close", session=branch)


def test_a_failed_opening_does_not_disturb_the_other_sessions(room: Room, another: Room) -> None:
    another.open()
    held = another.start(f"say up\n{another.gate('open')}\nsay down")
    another.said("up")
    room.refused("open", "spawn_failed", config={"command": ["/no/such/agent"]})
    dying = room.call("open", config={"command": ["sh", "-c", "kill -9 $$"]})
    assert dying["signal"] == "SIGKILL"
    another.go("open")
    assert another.answer(held)["result"]["reply"] == "updown"


def test_many_sessions_open_at_once(daemon: Host) -> None:
    names = [f"many-{n}" for n in range(12)]
    opens = [
        daemon.send("open", session=name, config={"command": scripted(f"session={name}")})
        for name in names
    ]
    for name, request in zip(names, opens, strict=True):
        assert daemon.answer(request)["result"]["session_id"] == name
    turns = [daemon.start(None, f"say {name}", session=name) for name in names]
    for name, request in zip(names, turns, strict=True):
        assert daemon.answer(request)["result"]["reply"] == name
    closes = [daemon.send("close", session=name) for name in names]
    assert all(daemon.answer(request)["ok"] for request in closes)


def test_hosts_that_bound_the_start_themselves_are_not_hurried() -> None:
    """Generations A and B say no `hello`; verifiers gives openclaw's gateway minutes."""
    native, older = SimpleNamespace(native=lambda: True), SimpleNamespace(native=lambda: False)
    assert opening._start_timeout(native, Config()) == 60
    assert opening._start_timeout(older, Config()) == 300
    assert opening._start_timeout(older, Config(start_timeout=0.0)) == 0
