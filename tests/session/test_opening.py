"""Openings on the real daemon: bounded, told before all else, nothing left of a failed one."""

import json
from types import SimpleNamespace
from typing import Any

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


REFUSED = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"log in first"}}'
CAN = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
METHODS = {"protocolVersion": 1, "agentCapabilities": CAN, "authMethods": [{"id": "key"}]}


def locked(*methods: str) -> list[str]:
    """The options of an agent that wants authentication for these."""
    return [f"initialize={json.dumps(METHODS)}", *(f"{name}=raw:{REFUSED}" for name in methods)]


@pytest.mark.parametrize(
    ("options", "code", "next_step"),
    [
        (locked("load"), "auth_required", "authenticate, then load, resume"),
        (["load=error:-32002:gone"], "session_not_found", "load, resume"),
        (["without=load"], "unsupported", "open it for a fresh one"),
        (["load=silent"], "timeout", "open it for a fresh one"),
        (["initialize=raw:!", "start=" + b"x\n".hex()], "timeout", "load, resume"),
    ],
)
def test_no_prompt_starts_afresh_where_a_restore_failed(
    room: Room, options: list[str], code: str, next_step: str
) -> None:
    config = room.config(*options, start_timeout=0.5)
    load = room.send("load", session_id="old", config=config)
    behind = room.start("say afresh", **config)
    failed = room.answer(load)
    assert (failed["ok"], failed["code"]) == (False, code), failed
    for response in (room.answer(behind), room.prompt("say no"), room.prompt("say no", **config)):
        assert (response["ok"], response["code"]) == (False, code), response
        assert response["error"].startswith(failed["error"] + "; nothing was sent")
        assert next_step in response["error"]
        assert response.get("agent_code") == failed.get("agent_code")
    room.refused("send", code, message="say no")
    assert not {"session/new", "session/prompt"} & set(room.log.methods())
    room.open("session=fresh")
    assert room.reply("say fresh") == "fresh"


def test_a_restore_that_wanted_authentication_goes_on_after_it(room: Room) -> None:
    config = room.config(*locked("load"), session_meta={"k": 1})
    room.refused("load", "auth_required", session_id="old", config=config)
    room.refused("prompt", "auth_required", config={"user_contents": ["say no"]})
    room.ok("authenticate", method_id="key")
    assert room.ok("resume", session_id="old")["session_id"] == "old"
    assert room.reply("say on") == "on"
    methods = ["initialize", "session/load", "authenticate", "session/resume", "session/prompt"]
    assert room.log.methods() == methods
    assert room.log.messages("session/resume")[0]["params"]["_meta"] == {"k": 1}


def test_after_a_close_a_name_owes_nothing(room: Room) -> None:
    room.refused("load", "unsupported", session_id="old", config=room.config("without=load"))
    room.ok("close")
    assert room.reply("say afresh", **room.config()) == "afresh"


def test_what_was_not_said_again_is_as_in_the_try_that_wanted_authentication(room: Room) -> None:
    settings = {"cwd": "/", "session_meta": {"k": 1}, "mcp_proxy": "off"}
    settings |= {"mcp_urls": {"tools": "http://127.0.0.1:9/mcp"}}
    config = room.config(*locked("new"), **settings)
    room.refused("open", "auth_required", config=config)
    room.refused("prompt", "auth_required", config={"user_contents": ["say no"]})
    first, second = room.log.messages("session/new")
    assert first["params"]["_meta"] == {"k": 1}
    assert second["params"] == first["params"]
    assert len(room.log.messages("initialize")) == 1


@pytest.mark.parametrize(
    ("options", "change"),
    [(locked("new"), {"env": {"OTHER": "1"}}), (locked("new"), {"cwd": "/"}), (["session=b"], {})],
)
def test_another_agent_takes_the_place_of_one_that_waits_for_authentication(
    room: Room, options: list[str], change: dict[str, Any]
) -> None:
    room.refused("open", "auth_required", config=room.config(*locked("new")))
    pid = room.log.records()[0]["pid"]
    response = room.call("open", config=room.config(*options, **change))
    assert response["ok"] is (options == ["session=b"])
    assert wait_until(lambda: not alive(pid), 5)
    assert len(room.log.messages("initialize")) == 2


@pytest.mark.parametrize("operation", ["open", "load"])
def test_a_dead_session_stays_dead_until_it_is_opened(room: Room, operation: str) -> None:
    room.open()
    assert room.prompt("exit 3")["code"] == "agent_exited"
    fields = {"session_id": "s"} if operation == "load" else {}
    response = room.call(operation, config={"command": ["/no/such/agent"]}, **fields)
    assert response["code"] == "spawn_failed"
    response = room.prompt("say afresh", **room.config())
    assert response["ok"] is False
    assert "again" in response["error"]
    assert len(room.log.messages("session/new")) == 1
    room.open()
    assert room.reply("say afresh") == "afresh"


def test_a_prompt_behind_a_fork_that_failed_does_not_start_afresh(
    daemon: Host, room: Room, another: Room
) -> None:
    room.open("without=fork")
    fork = room.send("fork", new_session=another.name)
    behind = [another.start("say no", **room.config()) for _ in range(2)]
    assert room.answer(fork)["code"] == "unsupported"
    for request in (*behind, another.start("say no", **room.config())):
        response = another.answer(request)
        assert (response["ok"], response["code"]) == (False, "unsupported")
        assert "fork" in response["error"]
    assert room.log.methods() == ["initialize", "session/new"]
    room.refused("fork", "unsupported", new_session=another.name)
    assert another.open()["session_id"] == "s"
    assert "open already" in another.refused("load", "invalid_request", session_id="x")
    room.refused("fork", "invalid_request", new_session=another.name)
    assert another.reply("say here") == "here"


def test_a_fork_that_is_its_own_source_is_none(room: Room, another: Room) -> None:
    room.open('fork={"sessionId":"s"}')
    words = room.refused("fork", "protocol", new_session=another.name)
    assert "sessionId 's' is that of another session" in words
    assert room.reply("say still heard") == "still heard"
    another.refused("prompt", "protocol", config={"user_contents": ["say no"]})


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


def test_what_needs_a_session_that_is_being_opened_is_told_so(room: Room) -> None:
    opening = room.send("open", config=room.config("new=silent"))
    behind = [
        room.send("send", message="say no"),
        room.send("set_mode", mode_id="a"),
        room.send("fork", new_session=f"{room.name}-branch"),
    ]
    for request in behind:
        response = room.answer(request)
        assert (response["ok"], response["code"]) == (False, "invalid_request")
        assert "is being opened" in response["error"]
    room.ok("close")
    assert room.answer(opening)["code"] == "cancelled"


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
