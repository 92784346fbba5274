"""The services a host may have served: only what was asked for, elicitations by the host."""

import json
from typing import Any

import pytest

from tests.peers.host import Host
from tests.peers.processes import alive, wait_until
from tests.session.room import SOON, Room

FORM = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "n": 1.0}}
ASK = "request elicitation/create " + json.dumps(FORM)


def said(response: dict[str, Any]) -> Any:
    assert response["ok"] is True, response
    return json.loads(response["result"]["reply"])


@pytest.mark.parametrize(
    "method", ["fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/kill"]
)
def test_what_was_not_asked_for_is_not_served(room: Room, method: str) -> None:
    room.open()
    refusal = said(room.prompt(f"request {method} {{}}"))
    assert refusal["code"] == -32601
    assert method in refusal["message"]


def test_files_are_served_when_asked_for(room: Room) -> None:
    room.open(client_services=["fs"])
    path = room.directory / "é.txt"
    written = {"path": str(path), "content": "one\ntwo\n"}
    assert said(room.prompt("request fs/write_text_file " + json.dumps(written))) in ({}, None)
    assert path.read_text() == "one\ntwo\n"
    read = said(room.prompt("request fs/read_text_file " + json.dumps({"path": str(path)})))
    assert read["content"] == "one\ntwo\n"
    assert said(room.prompt("request terminal/create {}"))["code"] == -32601


def test_terminals_are_served_when_asked_for_and_end_with_the_session(room: Room) -> None:
    room.open(client_services=["terminal"])
    create = {"command": "sh", "args": ["-c", "echo hi; exit 3"]}
    steps = [
        ["terminal/create", create],
        ["terminal/wait_for_exit", {"terminalId": "$terminal"}],
        ["terminal/output", {"terminalId": "$terminal"}],
    ]
    _, exit_, output = said(room.prompt("steps " + json.dumps(steps)))
    assert exit_["exitCode"] == 3
    assert output["output"] == "hi\n"
    sleeping = {"command": "sleep", "args": ["600"]}
    said(room.prompt("request terminal/create " + json.dumps(sleeping)))


def test_a_dead_agent_s_terminals_end_with_it(room: Room) -> None:
    room.open(client_services=["terminal"])
    pid = room.directory / "pid"
    create = {"command": "sh", "args": ["-c", f"echo $$ > {pid}; exec sleep 600"]}
    turn = room.start(f"request terminal/create {json.dumps(create)}\n{room.gate('go')}\nexit 3")
    assert wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"), SOON)
    room.go("go")
    assert room.answer(turn)["code"] == "agent_exited"
    assert wait_until(lambda: not alive(int(pid.read_text())), SOON)
    room.open(client_services=["terminal"])
    made = said(room.prompt('request terminal/create {"command":"true"}'))
    assert made["terminalId"] == "term_1"


@pytest.mark.parametrize(
    ("action", "content", "result"),
    [
        ("accept", {"name": "é"}, {"action": "accept", "content": {"name": "é"}}),
        ("decline", None, {"action": "decline"}),
        ("cancel", None, {"action": "cancel"}),
    ],
)
def test_an_elicitation_is_put_to_the_host(
    room: Room, action: str, content: Any, result: dict[str, Any]
) -> None:
    room.open(client_services=["elicitation"])
    running = room.start(f"say before\n{ASK}")
    event = room.event("elicitation")
    assert event["turn"] == 1
    assert event["params"] == {"sessionId": "s", **FORM}
    answer = {"request_id": event["request_id"], "action": action, "content": content}
    assert room.ok("elicitation", **answer) == {}
    reply = room.answer(running)["result"]["reply"]
    assert json.loads(reply.removeprefix("before")) == result
    room.refused("elicitation", "invalid_request", **answer)


def test_an_elicitation_nobody_asked_for_or_listens_to_is_declined(
    daemon: Host, room: Room, another: Room
) -> None:
    room.open()
    assert said(room.prompt(ASK)) == {"action": "decline"}
    daemon.hello("update")
    try:
        another.open(client_services=["elicitation"])
        assert said(another.prompt(ASK)) == {"action": "decline"}
    finally:
        daemon.hello()
    assert room.events("elicitation") == []


def test_a_cancel_answers_the_elicitation_that_is_open_and_those_that_come(room: Room) -> None:
    room.open(client_services=["elicitation"])
    running = room.start(f"oncancel ignore\n{ASK}\n{ASK}")
    room.event("elicitation")
    room.ok("cancel")
    reply = room.answer(running)["result"]["reply"]
    assert reply == '{"action": "cancel"}' * 2
    assert len(room.events("elicitation")) == 1
    assert room.reply("say on") == "on"


def test_waiting_for_an_elicitation_is_not_being_idle(room: Room, another: Room) -> None:
    room.open(client_services=["elicitation"], idle_timeout=0.2)
    running = room.start(ASK)
    event = room.event("elicitation")
    another.open()
    assert another.prompt("pieces 10 0.02\nsay " + "x" * 200)["ok"] is True
    room.ok("elicitation", request_id=event["request_id"], action="decline")
    assert said(room.answer(running)) == {"action": "decline"}


def test_what_the_host_is_asked_keeps_wire_order(room: Room) -> None:
    room.open(client_services=["elicitation"], permission="ask")
    call = {"toolCall": {"toolCallId": "c"}, "options": [{"optionId": "y", "kind": "allow_once"}]}
    running = room.start(
        "batch\nsay one\nask elicitation/create {}\nsay two\n"
        f"ask session/request_permission {json.dumps(call)}\nsay three"
    )
    assert room.answer(running)["result"]["reply"] == "onetwothree"
    order = [event["event"] for event in room.events()]
    assert order == ["update", "elicitation", "update", "permission", "update"]
    assert {event["turn"] for event in room.events()} == {1}


def test_open_questions_do_not_keep_a_session_from_closing(room: Room) -> None:
    room.open(client_services=["elicitation"], permission="ask")
    running = room.start(ASK)
    event = room.event("elicitation")
    assert room.call("close", SOON)["ok"] is True
    assert room.answer(running, SOON)["result"]["stop_reason"] == "cancelled"
    room.refused("elicitation", "invalid_request", request_id=event["request_id"], action="accept")
