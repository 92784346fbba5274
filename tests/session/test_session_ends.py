"""Turns that are cancelled and agents that die, on the real daemon."""

import os
import signal
from typing import Any

from tests.peers.host import Host
from tests.peers.processes import wait_until
from tests.session.room import SOON, Room


def test_a_cancel_is_answered_when_the_turn_has_ended(room: Room) -> None:
    room.open()
    running = room.start("say part\noncancel text: bye\nwait cancel\nsay more\nstop end_turn")
    room.said("part")
    cancelled = room.send("cancel")
    answer = room.answer(running)
    assert room.answer(cancelled)["result"] == {}
    assert answer["ok"] is True
    assert (answer["outcome"], answer["result"]["stop_reason"]) == ("cancelled", "cancelled")
    order = [f["id"] for f in room.frames() if f.get("id") in (running, cancelled)]
    assert order == [running, cancelled]
    assert len(room.log.messages("session/cancel")) == 1


def test_a_cancel_with_nothing_to_cancel_is_answered_at_once(room: Room) -> None:
    room.open()
    assert room.ok("cancel") == {}
    assert room.reply("say on") == "on"
    assert room.ok("cancel") == {}
    assert room.log.messages("session/cancel") == []


def test_a_cancel_spares_the_prompt_that_came_after_it(room: Room) -> None:
    room.open()
    for n in range(10):
        ids = f"{room.name}-c{n}", f"{room.name}-p{n}"
        prompt = {"session": room.name, "config": {"user_contents": ["say x"]}}
        room.host.raw(
            room.host.frame({"id": ids[0], "operation": "cancel", "session": room.name})
            + room.host.frame({"id": ids[1], "operation": "prompt", **prompt})
        )
        (answer,) = room.wait(lambda ids=ids: [f for f in room.frames() if f.get("id") == ids[1]])
        assert answer["result"]["stop_reason"] == "end_turn"


def test_a_cancel_reaches_a_prompt_that_has_not_begun(room: Room) -> None:
    waiting = room.start("say never", **room.config())
    assert room.ok("cancel") == {}
    answer = room.answer(waiting)
    assert (answer["ok"], answer["result"]["stop_reason"]) == (True, "cancelled")
    assert answer["turn"] is None
    assert room.reply("say on", **room.config()) == "on"
    assert room.log.messages("session/cancel") == []
    assert len(room.log.prompts()) == 1


def test_a_cancel_reaches_a_prompt_whose_session_is_being_opened(room: Room) -> None:
    opening = room.start("say never", **room.config("new=silent", start_timeout=0.5))
    assert wait_until(lambda: room.log.messages("session/new"))
    assert room.ok("cancel") == {}
    answer = room.answer(opening)
    assert (answer["ok"], answer["result"]["stop_reason"]) == (True, "cancelled")
    assert room.reply("say on", **room.config()) == "on"
    assert len(room.log.prompts()) == 1


def test_cancelling_twice_asks_the_agent_once(room: Room) -> None:
    room.open()
    running = room.start(f"say up\noncancel ignore\n{room.gate('twice')}")
    room.said("up")
    cancels = [room.send("cancel") for _ in range(3)]
    assert wait_until(lambda: room.log.messages("session/cancel"))
    room.go("twice")
    assert room.answer(running)["outcome"] == "cancelled"
    assert [room.answer(cancel)["result"] for cancel in cancels] == [{}] * 3
    assert len(room.log.messages("session/cancel")) == 1


def test_a_cancelled_turn_s_late_text_reaches_no_other(room: Room) -> None:
    room.open()
    running = room.start("say up\nwait cancel\nlate LATE")
    room.said("up")
    room.ok("cancel")
    assert room.answer(running)["result"]["reply"] == "up"
    assert room.reply("say next") == "next"
    late = [e for e in room.events("update") if e["update"]["content"]["text"] == "LATE"]
    assert [event["turn"] for event in late] == [None]


def test_a_cancel_ends_the_wait_for_late_text(room: Room) -> None:
    room.open()
    running = room.start('update {"sessionUpdate":"nothing visible"}')
    room.event("update")
    room.ok("cancel")
    answer = room.answer(running)
    assert answer["ok"] is True
    assert answer["result"]["stop_reason"] in ("cancelled", "end_turn")


def test_a_dead_agent_s_session_says_so_until_it_is_opened_again(room: Room) -> None:
    room.open()
    pid = int(room.reply("pid"))
    os.kill(pid, signal.SIGKILL)
    exit_ = room.event("exit")
    assert (exit_["exit_code"], exit_["signal"], exit_["turn"]) == (None, "SIGKILL", None)
    for operation, fields in (
        ("prompt", {"config": {"user_contents": ["say no"]}}),
        ("send", {"message": "say no"}),
        ("steer", {"message": "no"}),
        ("set_mode", {"mode_id": "x"}),
        ("list_sessions", {}),
        ("fork", {"new_session": f"{room.name}-x"}),
    ):
        response = room.call(operation, **fields)
        assert response["code"] == "agent_exited", response
        assert response["signal"] == "SIGKILL"
        assert "again" in response["error"]
    assert room.ok("cancel") == {}
    assert room.ok("status")["sessions"][room.name]["state"] == "dead"
    assert room.ok("resume", session_id="s", config=room.config())["session_id"] == "s"
    assert room.reply("say back") == "back"
    assert room.events("update")[-1]["turn"] == 2


def test_a_fork_dies_with_its_agent_and_both_are_told(daemon: Host, room: Room) -> None:
    room.open()
    branch = f"{room.name}-branch"
    room.ok("fork", new_session=branch)
    ours = room.start("say up\nwait cancel")
    room.said("up")
    theirs = daemon.start(None, "exit 4", session=branch)
    answers: list[Any] = [room.answer(ours, SOON), room.answer(theirs, SOON)]
    assert [(a["code"], a["exit_code"]) for a in answers] == [("agent_exited", 4)] * 2
    assert room.event("exit")["exit_code"] == 4
    assert daemon.event("exit", session=branch)["exit_code"] == 4
    daemon.call("close", session=branch)
