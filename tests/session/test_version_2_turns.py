"""Turns of ACP version 2 through the real daemon, on the three loops: whatever order their signs
come in, each has one end, and what it said is its own."""

import json
from collections.abc import Iterator

import pytest

from tests.peers.processes import wait_until
from tests.session.room import Room
from tests.session.version_2 import OPTIONS, call, config, faults, kinds, opened


@pytest.fixture(autouse=True)
def _only_what_the_schema_has(room: Room) -> Iterator[None]:
    yield
    assert list(faults(room.log)) == []


def test_a_cancel_ends_the_turn_by_its_idle_state(room: Room) -> None:
    opened(room, permission="ask")
    params = {"title": "May it?", "options": OPTIONS}
    running = room.start(f"oncancel text: bye\nsay up\npermission {json.dumps(params)}")
    room.event("permission")
    room.ok("cancel")
    response = room.answer(running)
    assert (response["ok"], response["outcome"]) == (True, "cancelled")
    assert response["result"]["stop_reason"] == "cancelled"
    assert room.log.answer("agent-2")["result"] == {"outcome": {"outcome": "cancelled"}}
    assert room.reply("say next") == "next"


def test_a_cancel_before_the_prompt_was_taken_in(room: Room) -> None:
    opened(room)
    running = room.start("bare\nwait never")
    wait_until(lambda: room.log.prompts())
    room.ok("cancel")
    response = room.answer(running)
    assert (response["ok"], response["result"]["stop_reason"]) == (True, "cancelled")
    assert room.reply("say next") == "next"


def test_the_failure_of_a_turn_is_told_as_version_1_s(room: Room) -> None:
    opened(room)
    error = {"code": -32001, "message": "no model", "data": {"details": "quota"}}
    response = room.prompt(
        f"say so far\nidle {json.dumps({'stopReason': 'error', 'error': error})}"
    )
    assert (response["ok"], response["code"], response["error"]) == (False, "agent_error", "quota")
    assert (response["agent_code"], response["result"]["reply"]) == (-32001, "so far")
    assert room.reply("say next") == "next"


def test_an_agent_s_own_turn_is_told_and_numbered(room: Room) -> None:
    opened(room)
    own = ["running", "say found it", "idle"]
    assert room.reply(f"say first\nlater {json.dumps([room.gate('own'), *own])}") == "first"
    room.go("own")
    ended = room.event("turn", state="ended")
    assert (ended["turn"], ended["message_ids"]) == (2, [])
    assert (ended["result"]["reply"], ended["result"]["stop_reason"]) == ("found it", "end_turn")
    assert room.event("turn", state="started")["turn"] == 2
    assert kinds(room, 2) == ["state_update", "agent_message_chunk", "state_update"]
    frames = room.frames()
    assert frames.index(room.events("update", turn=2)[-1]) < frames.index(ended)
    response = room.prompt("say third")
    assert (response["turn"], response["result"]["reply"]) == (3, "third")


def test_what_is_queued_waits_for_the_agent_s_own_turn(room: Room) -> None:
    opened(room)
    room.reply(f"say first\nlater {json.dumps(['running', room.gate('on'), 'idle'])}")
    room.event("turn", state="started")
    assert room.ok("send", message="say queued", message_id="q")["outcome"] == "accepted"
    room.go("on")
    ended = room.wait(lambda: room.events("turn", state="ended", message_ids=["q"]))
    assert (ended[0]["turn"], ended[0]["result"]["reply"]) == (3, "queued")


def test_a_turn_without_text_is_answered_when_the_agent_goes_on(room: Room) -> None:
    opened(room)
    own = ["running", "say found it", "idle"]
    response = room.prompt(f"{call(toolCallId='c')}\nlater {json.dumps(own)}")
    assert (response["ok"], response["result"]["reply"]) == (True, "")
    assert room.event("turn", state="ended")["result"]["reply"] == "found it"


def test_deadlines_hold_for_the_agent_s_own_turn(room: Room) -> None:
    opened(room, turn_timeout=1, close_grace=0.3)
    room.reply(f"say first\nlater {json.dumps(['running', 'oncancel ignore', 'wait never'])}")
    assert room.event("turn", state="ended")["code"] == "timeout"


def test_a_prompt_waits_for_the_agent_s_own_turn(room: Room) -> None:
    opened(room)
    own = ["running", "say mine", room.gate("on"), "idle"]
    room.reply(f"say first\nlater {json.dumps(own)}")
    room.event("turn", state="started")
    waiting = room.start("say yours")
    assert room.ok("status")["sessions"][room.name]["state"] == "running"
    assert len(room.log.prompts()) == 1
    room.go("on")
    response = room.answer(waiting)
    assert (response["turn"], response["result"]["reply"]) == (3, "yours")
    assert room.event("turn", state="ended")["result"]["reply"] == "mine"


def test_a_cancel_ends_the_agent_s_own_turn_and_what_waits_for_it(room: Room) -> None:
    opened(room)
    room.reply(f"say first\nlater {json.dumps(['running', 'wait never'])}")
    room.event("turn", state="started")
    waiting = room.start("say yours")
    room.ok("cancel")
    assert room.event("turn", state="ended")["result"]["outcome"] == "cancelled"
    assert room.answer(waiting)["outcome"] == "cancelled"
    assert room.reply("say next") == "next"


def test_work_that_crossed_the_prompt_is_not_its_turn(room: Room) -> None:
    opened(room)
    theirs = ["running", "say theirs", "idle"]
    ours = ["echo", "respond", "running", "id ours mine", "idle"]
    assert room.reply("\n".join(["bare", *theirs, *ours])) == "mine"
    assert room.events("turn") == []


@pytest.mark.parametrize(
    "program",
    [
        ["echo", "running", "say x", "idle", "respond"],
        ["respond", "running", "say x", "idle", "echo"],
        ["running", "echo", "respond", "say x", "idle"],
        ["running", "echo", "say x", "idle"],
    ],
)
def test_the_order_of_receipt_and_echo_does_not_matter(room: Room, program: list[str]) -> None:
    opened(room)
    assert room.reply("\n".join(["bare", *program])) == "x"
    assert room.reply("say next") == "next"
    assert room.events("turn") == []


def test_an_idle_that_nothing_contradicts_ends_the_turn(room: Room) -> None:
    opened(room)
    assert room.reply("bare\nrunning\nsay x\nidle") == "x"
    assert room.reply("say next") == "next"


def test_a_repeated_idle_ends_nothing(room: Room) -> None:
    opened(room)
    again = 'state {"state":"idle","background":[]}'
    program = ["bare", "echo", "respond", again, "running", "say x", "idle", again]
    assert room.reply("\n".join(program)) == "x"
    assert room.reply("say next") == "next"


def test_what_an_earlier_turn_still_says_is_not_the_next_one_s(room: Room) -> None:
    opened(room)
    room.reply(f"id old said\n{call(toolCallId='old')}")
    program = ["id old late", call(toolCallId="old", status="completed"), "id new now"]
    response = room.prompt("\n".join(program))
    assert response["result"]["reply"] == "now"
    late = [e["update"]["sessionUpdate"] for e in room.events("update", turn=None)]
    assert late[-2:] == ["agent_message_chunk", "tool_call_update"]


def test_a_prompt_that_is_refused_ends_the_turn(room: Room) -> None:
    opened(room)
    response = room.prompt("bare\nrefuse -32602 no such block")
    assert (response["code"], response["agent_code"]) == ("agent_error", -32602)
    assert room.reply("say next") == "next"


@pytest.mark.parametrize("lines", [["echo", "respond", "running"], ["running"], []])
def test_an_agent_that_dies_ends_the_turn(room: Room, lines: list[str]) -> None:
    opened(room)
    response = room.prompt("\n".join(["bare", *lines, "say x", "exit 3"]))
    assert (response["code"], response["exit_code"]) == ("agent_exited", 3)
    assert response["result"]["reply"] == "x"


def test_an_agent_that_dies_in_a_turn_of_its_own_ends_it(room: Room) -> None:
    opened(room)
    room.reply(f"say first\nlater {json.dumps(['running', 'say x', 'exit 3'])}")
    ended = room.event("turn", state="ended")
    assert (ended["code"], ended["result"]["reply"]) == ("agent_exited", "x")
    room.refused("set_mode", "agent_exited", mode_id="a")


def test_a_session_that_is_resumed_in_mid_turn_tells_of_it(room: Room) -> None:
    room.ok("resume", session_id="old", config=config(room, "resumed=running"))
    assert room.event("turn", state="ended")["result"]["reply"] == "going on"
    assert room.reply("say next") == "next"
