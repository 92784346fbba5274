"""A turn's deadlines on the real daemon: it ends in time, once, with what came."""

import json
from typing import Any

import pytest

from bridge.session.attendance import CLOSE_GRACE, Limits, grace_of
from protocol_schemas.host import Config
from tests.peers.processes import alive, wait_until
from tests.session.room import FOUR, SOON, Room

OPTIONS = [{"optionId": "y", "kind": "allow_once", "name": "y"}]


def test_a_prompt_s_own_deadlines_win_over_its_session_s() -> None:
    session = Config(turn_timeout=1, idle_timeout=2, close_grace=3)
    assert Limits.of(Config(), session) == Limits(1, 2, 3)
    own = Config(turn_timeout=4, idle_timeout=0, close_grace=0.5)
    assert Limits.of(own, session) == Limits(4, 0, 0.5)
    assert Limits.of(Config(), Config()) == Limits(None, None, CLOSE_GRACE)
    assert (grace_of(own, session), grace_of(Config(), session)) == (0.5, 3)


def test_a_turn_that_takes_too_long_is_stopped_and_keeps_what_came(room: Room) -> None:
    room.open()
    response = room.prompt("say part\nwait cancel\nstop cancelled", turn_timeout=0.3, seconds=SOON)
    assert (response["ok"], response["code"]) == (False, "timeout")
    assert "0.3 s (turn_timeout)" in response["error"]
    assert set(response["result"]) == FOUR
    assert (response["result"]["reply"], response["result"]["stop_reason"]) == ("part", None)
    assert (response["outcome"], response["agent_stop_reason"]) == ("timeout", "cancelled")
    assert len(room.log.messages("session/cancel")) == 1
    assert room.reply("say on") == "on"


def test_a_turn_without_a_sign_of_life_is_stopped(room: Room) -> None:
    room.open(idle_timeout=0.4)
    response = room.prompt("say part\nwait cancel", seconds=SOON)
    assert (response["ok"], response["code"]) == (False, "timeout")
    assert "0.4 s (idle_timeout)" in response["error"]
    assert response["result"]["reply"] == "part"
    assert room.reply("say on") == "on"


def test_signs_of_life_keep_a_turn_going(room: Room) -> None:
    room.open()
    # Three times the idle period in all, never that long without an update.
    words = "\n".join(f"pieces 100000 0.15\nsay {n}" for n in range(10))
    response = room.prompt(words, idle_timeout=0.5, seconds=SOON)
    assert response["ok"] is True, response


def test_waiting_for_the_host_is_not_being_idle(room: Room, another: Room) -> None:
    room.open(permission="ask")
    running = room.start(f"permission {json.dumps(OPTIONS)}", idle_timeout=0.2)
    event = room.event("permission")
    # Several idle periods pass in another session meanwhile.
    another.open()
    slow = another.prompt("pieces 10 0.02\nsay " + "x" * 200)
    assert slow["ok"] is True
    assert [f for f in room.frames() if f.get("id") == running] == []
    room.ok("permission", request_id=event["request_id"], outcome="allow")
    assert room.answer(running)["ok"] is True


@pytest.mark.parametrize("how", ["wait cancel\nhang", "oncancel hang\nwait steer"])
def test_an_agent_that_ignores_the_cancel_is_killed_and_the_turn_ends(room: Room, how: str) -> None:
    room.open()
    pid = int(room.reply("pid"))
    running = room.start(f"say part\n{how}", close_grace=0.3)
    room.said("part")
    cancel = room.send("cancel")
    response = room.answer(running, SOON)
    assert (response["ok"], response["outcome"]) == (True, "cancelled")
    assert (response["result"]["reply"], response["result"]["stop_reason"]) == ("part", "cancelled")
    assert room.answer(cancel, SOON)["result"] == {}
    assert wait_until(lambda: not alive(pid), 5)
    assert room.prompt("say no")["code"] == "agent_exited"
    assert room.open()["session_id"] == "s"
    assert room.reply("say reborn") == "reborn"


def test_a_deadline_and_a_deaf_agent_end_in_a_timeout(room: Room) -> None:
    room.open("eof=ignore", "term=ignore")
    running = room.start("say part\nhang", turn_timeout=0.2, close_grace=0.2)
    response = room.answer(running, SOON)
    assert (response["code"], response["result"]["reply"]) == ("timeout", "part")
    assert room.event("exit")["signal"] == "SIGKILL"


@pytest.mark.parametrize("limit", [{"turn_timeout": 30}, {"idle_timeout": 30}])
def test_deadlines_that_are_not_hit_change_nothing(room: Room, limit: dict[str, Any]) -> None:
    room.open(**limit)
    assert room.reply("say hi") == "hi"
    assert room.prompt("say x\nexit 3")["code"] == "agent_exited"


def test_a_deadline_holds_for_messages_without_a_request_too(room: Room) -> None:
    room.open(turn_timeout=0.2)
    room.ok("send", message="say part\nwait cancel", message_id="m")
    ended = room.event("turn", state="ended")
    assert (ended["code"], ended["message_ids"]) == ("timeout", ["m"])
    assert ended["result"]["reply"] == "part"


def test_late_text_ends_the_wait_for_it(room: Room) -> None:
    room.open()
    answer = room.prompt("late one\nlate two", seconds=SOON)
    assert answer["result"]["reply"] == "onetwo"


def test_a_turn_that_stays_silent_is_answered_in_the_end(room: Room) -> None:
    room.open()
    answer = room.prompt('update {"sessionUpdate":"x"}', seconds=SOON)
    assert (answer["ok"], answer["result"]["reply"]) == (True, "")
