"""All sessions of one daemon: side by side, told apart, and brought to one orderly end."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Spawn
from tests.peers.agent import scripted
from tests.peers.host import Host
from tests.peers.processes import alive, wait_until
from tests.session.room import SOON, Room

DEAF = scripted("eof=ignore", "term=ignore", "spawn=deaf", "close=silent")


def open_session(host: Host, name: str, command: list[str], **more: Any) -> None:
    response = host.call("open", session=name, config={"command": command, **more})
    assert response["ok"] is True, response


def test_shutdown_ends_every_session_and_gives_the_default_one_s_metadata(
    spawn: Spawn, loop: str
) -> None:
    host = spawn("--loop", loop)
    for name in ("", "a", "b"):
        cost = json.dumps({"of": name})
        open_session(host, name, scripted(f"close_meta={cost}"))
    turns = [host.start(None, "say up\nwait cancel", session=name) for name in ("a", "b")]
    assert wait_until(lambda: len(host.log.messages("session/prompt")) == 2)
    response = host.shutdown()
    assert response["result"] == {"response_metadata": {"of": ""}}
    for turn in turns:
        answer = host.answer(turn)
        assert (answer["ok"], answer["result"]["stop_reason"]) == (True, "cancelled")
        assert host.frames.index(answer) < host.frames.index(response)
    assert len(host.log.messages("session/close")) == 3


def test_shutdown_without_any_session(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    assert host.shutdown()["result"] == {"response_metadata": {}}


def test_the_process_ends_after_shutdown_though_stdin_stays_open(spawn: Spawn) -> None:
    host = spawn()
    assert host.reply(scripted(), "say hi") == "hi"
    assert host.call("shutdown")["ok"] is True
    assert host.exit_code(SOON) == 0
    host.check()


def test_the_end_of_stdin_right_behind_a_shutdown_loses_no_answer(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    open_session(host, "", scripted('close_meta={"cost":1}'))
    request = host.send("shutdown")
    host.close_stdin()
    assert host.exit_code(SOON) == 0
    host.check()
    assert host.answer(request)["result"] == {"response_metadata": {"cost": 1}}


@pytest.mark.parametrize("grace", [0.5, 60])
def test_shutdown_is_answered_in_time_though_agents_are_deaf(spawn: Spawn, grace: float) -> None:
    host = spawn()
    for name in ("", "a"):
        open_session(host, name, DEAF, close_grace=grace)
    turn = host.start(None, "say up\nhang")
    assert wait_until(lambda: host.log.messages("session/prompt"))
    began = time.monotonic()
    request = host.send("shutdown")
    assert host.answer(request, 10)["ok"] is True
    assert time.monotonic() - began < 9.5
    answer = host.answer(turn)
    assert (answer["ok"], answer["result"]["reply"]) == (True, "up")
    assert host.exit_code(5) == 0
    host.check()


@pytest.mark.parametrize(
    "open_", [True, False], ids=["while sessions are open", "while they are opened"]
)
def test_every_open_request_is_answered_at_the_end_of_stdin(
    spawn: Spawn, loop: str, open_: bool
) -> None:
    host = spawn("--loop", loop)
    silent = scripted("set_mode=silent", "list=silent", "new=" + ("" if open_ else "silent"))
    requests: list[int | None] = []
    for name in ("", "a"):
        config = {"command": silent, "close_grace": 0.3}
        opening = host.send("open", session=name, config=config)
        if open_:
            assert host.answer(opening)["ok"] is True
            requests += [
                host.start(None, "say up\nhang", session=name),
                host.start(None, "say never", session=name),
                host.send("set_mode", session=name, mode_id="x"),
                host.send("list_sessions", session=name),
                host.send("cancel", session=name),
            ]
        else:
            requests += [opening, host.start(None, "say never", session=name)]
            requests.append(host.send("load", session=name, session_id="x", config=config))
    wanted = "session/list" if open_ else "session/new"
    assert wait_until(lambda: len(host.log.messages(wanted)) == 2)
    requests.append(host.send("close", session="a"))
    host.close_stdin()
    assert host.exit_code(9) == 0
    host.check()
    for request in requests:
        found = [f for f in host.frames if "event" not in f and f.get("id") == request]
        assert len(found) == 1, (request, found)


def test_sessions_are_told_apart_in_all_that_is_said(room: Room, another: Room) -> None:
    room.open()
    another.open()
    turns = [
        side.start(f"say {side.name}\nstderr 200\nupdate {json.dumps({'sessionUpdate': 'x'})}")
        for side in (room, another)
    ]
    for side, turn in zip((room, another), turns, strict=True):
        assert side.answer(turn)["result"]["reply"] == side.name
        assert side.texts() == [side.name]
        side.event("stderr")
    assert {event["session"] for event in room.events()} == {room.name}


def test_stderr_is_an_event_whose_characters_are_whole(room: Room) -> None:
    script = "printf '\\303' >&2; sleep 0.2; printf '\\251!\\n' >&2; exec cat"
    request = room.send("open", config={"command": ["sh", "-c", script], "start_timeout": 2})
    room.wait(lambda: "!" in "".join(e["text"] for e in room.events("stderr")))
    assert "".join(event["text"] for event in room.events("stderr")) == "é!\n"
    assert room.answer(request)["ok"] is False


def test_the_exit_event_precedes_the_answer_of_its_turn(room: Room) -> None:
    room.open()
    response = room.prompt("stderr 100\nexit 5")
    event = room.event("exit")
    assert (event["exit_code"], event["signal"], event["turn"]) == (5, None, 1)
    assert event["stderr"] == response["stderr"] != ""
    assert room.frames().index(event) < room.frames().index(response)


def test_one_agent_s_death_leaves_the_others_alone(room: Room, another: Room) -> None:
    room.open()
    another.open()
    held = another.start(f"say up\n{another.gate('lives')}\nsay down")
    another.said("up")
    os.kill(int(room.reply("pid")), signal.SIGKILL)
    assert room.event("exit")["signal"] == "SIGKILL"
    another.go("lives")
    assert another.answer(held)["result"]["reply"] == "updown"


def test_the_counters_count(spawn: Spawn) -> None:
    host = spawn()
    open_session(host, "a", scripted())
    for _ in range(3):
        host.answer(host.start(None, "say x", session="a"))
    assert host.call("status")["result"]["counters"] == {"turns": 3, "sessions": 1}
    host.shutdown()


def test_a_slow_host_holds_the_agents_back_and_loses_nothing(
    spawn: Spawn, loop: str, tmp_path: Path
) -> None:
    host = spawn("--loop", loop)
    host.hello("update")
    for name in ("a", "b"):
        open_session(host, name, scripted())
    idle = _resident(host.pid)
    host.pause()
    count, size = 150, 100_000
    turns = [host.start(None, f"flood {count} {size}", session=name) for name in ("a", "b")]
    # What the agents can still write goes somewhere: watched until that has long been everything.
    assert not wait_until(lambda: _resident(host.pid) - idle > 16 << 20, 1)
    host.resume()
    for name, turn in zip(("a", "b"), turns, strict=True):
        answer = host.answer(turn, 60)
        assert answer["ok"] is True
        texts = [e["update"]["content"]["text"] for e in host.events("update", session=name)]
        assert [int(text.split(" ")[0]) for text in texts] == list(range(count))
        assert answer["result"]["reply"] == "".join(texts)
    host.shutdown()


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def test_a_host_that_does_not_read_can_still_cancel_and_close(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.hello("update")
    open_session(host, "", scripted(), close_grace=1)
    host.pause()
    turn = host.start(None, "flood 100000 200\nwait cancel")
    assert wait_until(lambda: host.log.messages("session/prompt"))
    pid = host.log.records()[0]["pid"]
    cancel, close = host.send("cancel"), host.send("close")
    assert wait_until(lambda: not alive(pid), SOON)
    host.resume()
    answer = host.answer(turn)
    assert (answer["ok"], answer["result"]["stop_reason"]) == (True, "cancelled")
    assert host.answer(cancel)["ok"] is True
    assert host.answer(close)["ok"] is True
    host.shutdown()
