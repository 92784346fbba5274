"""Steering and sending into a running turn, on the real daemon (HOST_PROTOCOL §3 and §4)."""

import json

import pytest

from tests.peers.host import Host
from tests.peers.processes import wait_until
from tests.session.room import SOON, Room

PROMPT_REQUIRED = {"outcome": "promptRequired", "reason": "noRunningTurn"}


def test_a_steer_overtakes_the_prompts_that_wait(room: Room) -> None:
    room.open("with=steering")
    running = room.start("say up\nwait steer")
    waiting = room.start("say later")
    room.said("up")
    receipt = room.ok("steer", message="also check X", message_id="m1")
    assert receipt == {"outcome": "injected"}
    brought = json.loads(room.answer(running)["result"]["reply"].removeprefix("up"))
    assert brought == {
        "sessionId": "s",
        "prompt": [{"type": "text", "text": "also check X"}],
        "_meta": {"steering": {"idleBehavior": "promptRequired"}},
        "messageId": "m1",
    }
    assert room.answer(waiting)["result"]["reply"] == "later"


def test_a_steer_may_have_parts_and_no_id(room: Room) -> None:
    room.open("with=steering")
    running = room.start("say up\nwait steer")
    room.said("up")
    parts = [{"type": "text", "text": "look"}, {"type": "resource_link", "uri": "u", "name": "n"}]
    assert room.ok("steer", message=parts)["outcome"] == "injected"
    brought = json.loads(room.answer(running)["result"]["reply"].removeprefix("up"))
    assert brought["prompt"] == parts
    assert "messageId" not in brought


def test_steers_arrive_in_the_order_they_were_sent(room: Room) -> None:
    room.open("with=steering")
    running = room.start("say up\n" + "wait steer\n" * 10)
    room.said("up")
    steers = [
        {"id": f"{room.name}-{n}", "operation": "steer", "session": room.name, "message": str(n)}
        for n in range(10)
    ]
    room.host.raw(b"".join(room.host.frame(steer) for steer in steers))
    room.answer(running)
    sent = room.log.messages("_session/steering")
    assert [m["params"]["prompt"][0]["text"] for m in sent] == [str(n) for n in range(10)]


def test_an_idle_session_s_steer_goes_to_the_agent(room: Room) -> None:
    room.open("with=steering")
    assert room.ok("steer", message="hello?") == PROMPT_REQUIRED
    assert len(room.log.messages("_session/steering")) == 1


def test_before_there_is_a_session_a_prompt_is_required(room: Room) -> None:
    opening = room.start("say x", **room.config("with=steering", "new=silent", start_timeout=0.5))
    assert wait_until(lambda: room.log.messages("session/new"))
    assert room.ok("steer", message="hello?") == PROMPT_REQUIRED
    assert room.answer(opening)["code"] == "timeout"
    assert room.ok("steer", message="hello?") == PROMPT_REQUIRED
    assert room.log.messages("_session/steering") == []


def test_an_agent_that_cannot_steer_is_never_steered_by_other_means(room: Room) -> None:
    room.open()
    running = room.start("say up\nwait cancel")
    room.said("up")
    words = room.refused("steer", "unsupported", message="also check X")
    assert "steering" in words
    room.refused("send", "unsupported", message="also check X", mode="steer")
    assert room.log.methods() == ["initialize", "session/new", "session/prompt"]
    room.ok("cancel")
    room.answer(running)


@pytest.mark.parametrize(
    ("message", "code", "word"),
    [
        ("", "invalid_request", "empty"),
        ([{"type": "video"}], "invalid_request", "video"),
        (7, "invalid_request", "message"),
        ([{"type": "audio", "data": "", "mimeType": "audio/wav"}], "unsupported", "audio"),
    ],
)
@pytest.mark.parametrize("operation", ["steer", "send"])
def test_a_message_that_cannot_be_sent_is_refused_by_name(
    room: Room, operation: str, message: object, code: str, word: str
) -> None:
    room.open("with=steering")
    assert word in room.refused(operation, code, message=message)
    assert room.log.methods() == ["initialize", "session/new"]


def test_an_agent_s_refusal_of_a_steer_is_told(room: Room) -> None:
    room.open("with=steering", "steering=error:-32603:not now")
    response = room.call("steer", message="m")
    assert (response["code"], response["error"]) == ("agent_error", "not now")
    response = room.call("send", mode="steer", message="m", message_id="m1")
    assert (response["code"], response["error"]) == ("agent_error", "not now")
    receipt = room.ok("send", message="say other", message_id="m1")
    assert receipt["outcome"] == "accepted"


def test_a_message_sent_into_a_running_turn_is_accepted_once(room: Room) -> None:
    room.open("with=steering")
    running = room.start("say up\nwait steer")
    room.said("up")
    sent = {"mode": "steer", "message": "look", "message_id": "m1"}
    receipt = {"outcome": "accepted", "message_id": "m1"}
    assert room.ok("send", **sent) == receipt
    room.answer(running)
    assert room.ok("send", **sent) == receipt
    room.refused("send", "invalid_request", **{**sent, "message": "other"})
    assert len(room.log.messages("_session/steering")) == 1
    assert room.events("turn") == []


def test_a_message_sent_into_no_turn_was_not_accepted(room: Room) -> None:
    room.open("with=steering")
    answer = room.ok("send", mode="steer", message="look", message_id="m1")
    assert answer == {**PROMPT_REQUIRED, "message_id": "m1"}
    assert room.ok("send", message="say other", message_id="m1")["outcome"] == "accepted"
    assert room.event("turn", state="ended")["message_ids"] == ["m1"]


def test_a_steer_that_waits_when_the_agent_dies_is_answered(room: Room) -> None:
    room.open("with=steering", "steering=silent")
    running = room.start(f"say up\n{room.gate('steer')}\nexit 3")
    room.said("up")
    steer = room.send("steer", message="m")
    sent = room.send("send", mode="steer", message="m", message_id="m1")
    assert wait_until(lambda: len(room.log.messages("_session/steering")) == 2)
    room.go("steer")
    for request in (steer, sent, running):
        response = room.answer(request, SOON)
        assert (response["code"], response["exit_code"]) == ("agent_exited", 3)


def test_a_cancel_overtakes_a_control_the_agent_does_not_answer(daemon: Host, room: Room) -> None:
    room.open("set_mode=silent", "modes=1")
    running = room.start("say up\nwait cancel")
    room.said("up")
    waiting = room.send("set_mode", mode_id="ask")
    assert room.ok("cancel") == {}
    assert room.answer(running)["outcome"] == "cancelled"
    room.ok("close")
    assert room.answer(waiting, SOON)["code"] == "agent_exited"


SILENT = [
    ("set_mode", {"mode_id": "ask"}, "session/set_mode"),
    ("set_config_option", {"config_id": "c", "value": "v"}, "session/set_config_option"),
    ("list_sessions", {}, "session/list"),
    ("delete_session", {"session_id": "x"}, "session/delete"),
    ("authenticate", {"method_id": "key"}, "authenticate"),
    ("steer", {"message": "m"}, "_session/steering"),
    ("fork", {"new_session": "never"}, "session/fork"),
]


def test_controls_that_are_never_answered_end_in_time(room: Room) -> None:
    able = json.dumps(
        {
            "protocolVersion": 1,
            "agentCapabilities": {"sessionCapabilities": {"list": {}, "delete": {}, "fork": {}}},
            "authMethods": [{"id": "key", "name": "Key"}],
            "_meta": {"steering": {"supported": True}},
        }
    )
    deaf = [f"{method.rpartition('/')[2]}=silent" for _, _, method in SILENT]
    room.open(f"initialize={able}", *deaf, "modes=1", start_timeout=2)
    sent = [room.send(operation, **fields) for operation, fields, _ in SILENT]
    for request, (_, _, method) in zip(sent, SILENT, strict=True):
        answer = room.answer(request)
        assert (answer["ok"], answer["code"]) == (False, "timeout")
        assert method in answer["error"]
    assert wait_until(lambda: len(room.log.messages("$/cancel_request")) == len(SILENT))
    taken_back = [message["params"] for message in room.log.messages("$/cancel_request")]
    asked = [room.log.messages(method)[0]["id"] for _, _, method in SILENT]
    assert sorted(params["requestId"] for params in taken_back) == sorted(asked)
    assert room.reply("say still here") == "still here"


def test_how_long_a_control_may_take_is_told(daemon: Host) -> None:
    limits = daemon.hello()["limits"]
    assert (limits["control_seconds"], limits["login_seconds"]) == (60.0, 600.0)
