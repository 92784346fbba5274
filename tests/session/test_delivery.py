"""Messages without a turn of their own, on the real daemon (HOST_PROTOCOL §4, `send`)."""

from tests.session.room import FOUR, Room


def test_a_message_with_no_turn_running_starts_one_at_once(room: Room) -> None:
    room.open()
    receipt = room.ok("send", message="say hello", message_id="m1")
    assert receipt == {"outcome": "accepted", "message_id": "m1"}
    ended = room.event("turn", state="ended")
    assert (ended["turn"], ended["message_ids"]) == (1, ["m1"])
    assert ended["result"]["reply"] == "hello"
    assert set(ended["result"]) > FOUR
    assert "ok" not in ended
    started = room.event("turn", state="started")
    assert (started["turn"], started["message_ids"]) == (1, ["m1"])
    text = room.events("update")[0]
    assert started["seq"] < text["seq"] < ended["seq"]


def test_messages_wait_for_the_turn_and_go_out_as_one_in_order_of_arrival(room: Room) -> None:
    room.open()
    running = room.start(f"say up\n{room.gate('mail')}")
    room.said("up")
    packets = [
        room.host.frame(
            {
                "id": f"{room.name}-{n}",
                "operation": "send",
                "session": room.name,
                "message": f"say {n}",
                "message_id": str(n),
            }
        )
        for n in range(8)
    ]
    after = room.host.frame(
        {
            "id": f"{room.name}-after",
            "operation": "prompt",
            "session": room.name,
            "config": {"user_contents": ["say after"]},
        }
    )
    room.host.raw(b"".join(packets) + after)
    room.wait(lambda: [f for f in room.frames() if f.get("id") == f"{room.name}-7"])
    assert room.ok("status")["sessions"][room.name]["queued_messages"] == 8
    room.go("mail")
    assert room.answer(running)["turn"] == 1
    ended = room.event("turn", state="ended")
    assert (ended["turn"], ended["message_ids"]) == (2, [str(n) for n in range(8)])
    last = room.wait(lambda: [f for f in room.frames() if f.get("id") == f"{room.name}-after"])
    assert last[0]["turn"] == 3
    words = [block["text"] for block in room.log.prompts()[1]]
    assert [word for word in words if word != "\n\n"] == [f"say {n}" for n in range(8)]


def test_the_same_message_again_gets_its_first_receipt_and_runs_once(room: Room) -> None:
    room.open()
    for _ in range(3):
        assert room.ok("send", message="say once", message_id="m")["outcome"] == "accepted"
    room.event("turn", state="ended")
    assert room.ok("send", message="say once", message_id="m") == {
        "outcome": "accepted",
        "message_id": "m",
    }
    words = room.refused("send", "invalid_request", message="say twice", message_id="m")
    assert "'m'" in words
    assert room.reply("say after") == "after"
    assert room.texts() == ["once", "after"]


def test_after_a_cancel_messages_wait_for_the_next_prompt(room: Room) -> None:
    room.open()
    running = room.start("say up\nwait cancel")
    room.said("up")
    room.ok("send", message="say held", message_id="h")
    assert room.ok("cancel") == {}
    assert room.answer(running)["result"]["stop_reason"] == "cancelled"
    assert room.ok("cancel") == {}
    assert room.ok("status")["sessions"][room.name]["queued_messages"] == 1
    assert room.reply("dump") != ""
    said = [block["text"] for block in room.log.prompts()[-1]]
    assert said == ["say held", "\n\n", "dump"]
    assert room.events("turn") == []
    assert room.ok("status")["sessions"][room.name]["queued_messages"] == 0


def test_after_a_cancel_the_next_message_takes_those_that_wait_along(room: Room) -> None:
    room.open()
    running = room.start("say up\nwait cancel")
    room.said("up")
    room.ok("send", message="say held", message_id="h")
    cancelled = room.send("cancel")
    room.answer(running)
    # Right behind the answer, ahead of whatever the daemon still does about the turn.
    room.ok("send", message="say more", message_id="n")
    room.answer(cancelled)
    ended = room.event("turn", state="ended")
    assert ended["message_ids"] == ["h", "n"]


def test_messages_that_an_agent_s_death_leaves_are_told_of_once(room: Room) -> None:
    room.open()
    running = room.start(f"say up\n{room.gate('death')}\nexit 3")
    room.said("up")
    room.ok("send", message="say never", message_id="m1")
    room.ok("send", message="say never", message_id="m2")
    room.go("death")
    assert room.answer(running)["code"] == "agent_exited"
    ended = room.event("turn", state="ended")
    assert (ended["message_ids"], ended["turn"]) == (["m1", "m2"], None)
    assert (ended["code"], ended["exit_code"]) == ("agent_exited", 3)
    assert room.ok("status")["sessions"][room.name]["queued_messages"] == 0
    room.refused("send", "agent_exited", message="say no")
    assert room.open()["session_id"] == "s"
    assert room.reply("say reborn") == "reborn"
    assert len(room.events("turn")) == 1


def test_a_message_the_agent_cannot_take_is_refused_at_once(room: Room) -> None:
    room.open("without=image")
    url = {"url": "data:image/png;base64,AA"}
    words = room.refused("send", "unsupported", message=[{"type": "image_url", "image_url": url}])
    assert "image" in words
    room.refused("send", "invalid_request", message="")
    assert room.events("turn") == []


def test_closing_withdraws_what_was_not_delivered(room: Room) -> None:
    room.open()
    running = room.start("say up\nwait cancel")
    room.said("up")
    room.ok("send", message="say never")
    room.ok("close")
    assert room.answer(running)["result"]["stop_reason"] == "cancelled"
    assert len(room.log.prompts()) == 1
    assert room.events("turn") == []
