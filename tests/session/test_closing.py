"""Closing on the real daemon: turn, session, agent, in that order, each bounded."""

import itertools
from typing import Any

import pytest

from bridge.session.closing import HURRIED, Graces
from tests.conftest import Spawn
from tests.peers.agent import scripted
from tests.peers.processes import alive, wait_until
from tests.session.room import SOON, Room


@pytest.mark.parametrize("grace", [0, 0.1, 1, 5, 13, 60, 600])
def test_the_steps_of_an_orderly_close_keep_to_the_grace(grace: float) -> None:
    steps = Graces.within(grace)
    whole = steps.cancel + steps.close + steps.eof + steps.term
    assert whole <= grace + 1.5
    assert whole == pytest.approx(min(1.3 * grace, grace + 1.5))
    assert all(step >= 0 for step in (steps.cancel, steps.close, steps.eof, steps.term))


def test_the_default_and_the_hurried_close_fit_what_hosts_wait() -> None:
    killed = 2.0
    for steps, limit in ((Graces.within(5), 10.0), (HURRIED, 4.3)):
        assert steps.cancel + steps.close + steps.eof + steps.term + killed < limit


def test_the_order_is_cancel_close_end_of_stdin(room: Room) -> None:
    room.open()
    running = room.start("say up\nwait cancel\nstop cancelled")
    room.said("up")
    room.ok("close")
    assert room.answer(running)["result"]["stop_reason"] == "cancelled"
    assert room.log.methods()[-3:] == ["session/prompt", "session/cancel", "session/close"]
    (eof,) = room.log.events("eof")
    closed = next(r for r in room.log.records() if r.get("in", {}).get("method") == "session/close")
    assert closed["t"] <= eof["t"]
    assert room.log.events("signal") == []


def test_an_agent_that_cannot_close_sessions_just_ends(room: Room) -> None:
    room.open("without=close")
    assert room.ok("close") == {"response_metadata": {}}
    assert "session/close" not in room.log.methods()
    assert len(room.log.events("eof")) == 1


@pytest.mark.parametrize(
    "close", ["silent", "error:-32601:no", 'raw:{"jsonrpc":"2.0","id":$ID,"result":7}', "raw:junk"]
)
def test_whatever_the_agent_says_to_the_close_it_ends(room: Room, close: str) -> None:
    room.open(f"close={close}", close_grace=0.5)
    assert room.call("close", SOON)["result"] == {"response_metadata": {}}


DEAFNESS = [
    list(options)
    for count in (1, 2)
    for options in itertools.combinations(["eof=ignore", "term=ignore", "spawn=deaf"], count)
]


@pytest.mark.parametrize("options", DEAFNESS, ids="+".join)
def test_an_agent_deaf_to_any_step_is_gone_when_the_close_is_answered(
    room: Room, options: list[str]
) -> None:
    room.open(*options, close_grace=0.3)
    pid = room.log.records()[0]["pid"]
    assert room.call("close", SOON)["ok"] is True
    assert not alive(pid)


def test_what_the_agent_started_goes_with_it(room: Room) -> None:
    room.open(close_grace=0.3)
    pids = [int(pid) for pid in room.reply("spawn 2 deaf").strip("[]").split(",")]
    assert all(alive(pid) for pid in pids)
    assert room.call("close", SOON)["ok"] is True
    assert wait_until(lambda: not any(alive(pid) for pid in pids), 3)


def test_closing_a_dead_session_is_answered(room: Room) -> None:
    room.open()
    assert room.prompt("exit 3")["code"] == "agent_exited"
    assert room.ok("close") == {"response_metadata": {}}


def test_closing_twice_at_once_answers_both(room: Room) -> None:
    room.open("close=silent", close_grace=0.5)
    first, second = room.send("close"), room.send("close")
    assert [room.answer(close, SOON)["ok"] for close in (first, second)] == [True, True]


def test_requests_that_wait_for_the_agent_are_answered_when_it_is_closed(room: Room) -> None:
    room.open("set_mode=silent", "list=silent", "steering=silent", "with=steering", close_grace=0.5)
    waiting = [
        room.send("set_mode", mode_id="x"),
        room.send("list_sessions"),
        room.send("steer", message="m"),
        room.send("send", message="m", mode="steer"),
    ]
    assert wait_until(lambda: len(room.log.messages()) == 6)
    room.ok("close")
    answers = [room.answer(request, SOON) for request in waiting]
    assert {answer["code"] for answer in answers} == {"agent_exited"}


def batch(room: Room, *requests: tuple[str, dict[str, Any]]) -> list[str]:
    """Sends requests in one write; their ids."""
    frames, ids = b"", []
    for number, (operation, fields) in enumerate(requests):
        ids.append(f"{room.name}-batch-{number}")
        request = {"id": ids[-1], "operation": operation, "session": room.name, **fields}
        frames += room.host.frame(request)
    room.host.raw(frames)
    return ids


def test_an_open_right_behind_a_close_is_done_after_it(room: Room) -> None:
    room.open("session=first")
    running = room.start("say up\nwait cancel")
    room.said("up")
    again = {"config": room.config("session=second")}
    prompt = {"config": {"user_contents": ["say again"]}}
    closed, opened, prompted = batch(room, ("close", {}), ("open", again), ("prompt", prompt))
    assert room.answer(prompted)["result"]["reply"] == "again"
    assert room.answer(opened)["result"]["session_id"] == "second"
    assert room.answer(running)["outcome"] == "cancelled"
    order = [frame.get("id") for frame in room.frames() if "event" not in frame]
    assert [one for one in order if one in (closed, opened, prompted)] == [
        closed,
        opened,
        prompted,
    ]
    assert len(room.log.events("eof")) == 1


def test_closes_and_opens_take_turns_and_a_close_ends_what_is_opening(room: Room) -> None:
    room.open()
    again = {"config": room.config()}
    steps = [("close", {}), ("open", again), ("close", {}), ("open", again), ("status", {})]
    ids = batch(room, *steps)
    assert [room.answer(ident).get("code") for ident in ids] == [
        None,
        "cancelled",
        None,
        None,
        None,
    ]
    assert room.reply("say here") == "here"


def test_what_waits_for_a_close_at_the_end_is_answered(spawn: Spawn) -> None:
    host = spawn()
    host.hello()
    config = {"command": scripted("eof=ignore")}
    assert host.call("open", config=config)["ok"] is True
    host.send("close")
    opened = host.send("open", config=config)
    host.send("shutdown")
    answer = host.answer(opened)
    assert (answer["ok"], answer["code"]) == (False, "cancelled")
    host.close_stdin()
    assert host.exit_code() == 0
    host.check()
