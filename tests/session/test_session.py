"""A session's turns on the real daemon: their order, their events, what is delivered when."""

import base64
import json
import os

import pytest

from tests.peers.host import Host
from tests.session.room import FOUR, SOON, Room


def test_a_turn_s_result_and_what_stands_beside_it(room: Room) -> None:
    room.open()
    response = room.prompt(
        'update {"sessionUpdate":"x","_meta":{"n":1}}\nsay hi\n'
        'result {"_meta":{"cost":2},"usage":{"totalTokens":7}}'
    )
    assert set(response) == {
        *("id", "ok", "result", "turn", "agent_stop_reason", "outcome", "usage", "truncated")
    }
    assert response["result"] == {
        "reply": "hi",
        "stop_reason": "end_turn",
        "response_metadata": {"cost": 2},
        "update_metadata": [{"n": 1}],
    }
    assert (response["turn"], response["outcome"], response["truncated"]) == (1, "completed", False)
    assert response["usage"] == {"totalTokens": 7}


@pytest.mark.parametrize(
    ("reason", "outcome", "truncated"),
    [("max_tokens", "truncated", True), ("refusal", "refused", False), ("odd", "completed", False)],
)
def test_a_stop_reason_goes_through(room: Room, reason: str, outcome: str, truncated: bool) -> None:
    room.open()
    response = room.prompt(f"say x\nstop {reason}")
    assert response["result"]["stop_reason"] == response["agent_stop_reason"] == reason
    assert (response["outcome"], response["truncated"]) == (outcome, truncated)


def test_a_prompt_opens_its_session_with_its_config(room: Room) -> None:
    config = room.config("session=s-2", system_prompt="be nice")
    response = room.host.answer(room.send("prompt", config={**config, "user_contents": ["dump"]}))
    said = json.loads(response["result"]["reply"])
    assert [block["text"] for block in said] == ["(system)\nbe nice\n\n[user]\n", "dump"]
    assert room.ok("status")["sessions"][room.name]["session_id"] == "s-2"


def test_the_system_prompt_of_open_reaches_the_first_prompt_and_no_other(room: Room) -> None:
    room.open(system_prompt="be nice")
    first = json.loads(room.reply("dump"))
    assert [block["text"] for block in first] == ["(system)\nbe nice\n\n[user]\n", "dump"]
    assert json.loads(room.reply("dump")) == [{"type": "text", "text": "dump"}]
    assert json.loads(room.reply("dump", system_prompt="other")) == [
        {"type": "text", "text": "dump"}
    ]


def test_a_prompt_s_own_system_prompt_wins_in_the_first_turn(room: Room) -> None:
    room.open(system_prompt="be nice")
    said = json.loads(room.reply("dump", system_prompt="be terse"))
    assert said[0]["text"] == "(system)\nbe terse\n\n[user]\n"


def test_another_agent_is_refused_by_name(room: Room) -> None:
    room.open()
    response = room.prompt("say no", command=["another"])
    assert (response["ok"], response["code"]) == (False, "invalid_request")
    assert "config.command differs" in response["error"]
    assert room.reply("say yes", command=room.config()["command"]) == "yes"


def test_blocks_go_out_in_order_and_whole(room: Room) -> None:
    room.open("with=audio")
    image = base64.b64encode(os.urandom(30_000)).decode()
    link = {"type": "resource_link", "uri": "file:///é", "name": "é", "_meta": {"n": 1}}
    parts = [
        {"type": "text", "text": "what is"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}},
        link,
        {"type": "text", "text": "say ok"},
    ]
    assert room.reply("first", parts) == "ok"
    (prompt,) = room.log.prompts()
    assert prompt == [
        {"type": "text", "text": "first"},
        {"type": "text", "text": "\n\n"},
        {"type": "text", "text": "what is"},
        {"type": "image", "data": image, "mimeType": "image/png"},
        link,
        {"type": "text", "text": "say ok"},
    ]


def test_prompts_run_one_after_another_in_order(room: Room) -> None:
    room.open()
    requests = [room.start(f"say {n}") for n in range(30)]
    answers = [room.answer(request) for request in requests]
    assert [answer["result"]["reply"] for answer in answers] == [str(n) for n in range(30)]
    assert [answer["turn"] for answer in answers] == list(range(1, 31))
    ids = [f["id"] for f in room.frames() if f.get("id") in requests]
    assert ids == requests


def test_sessions_run_side_by_side(room: Room, another: Room) -> None:
    room.open()
    another.open()
    held = room.start(room.gate("side"), "say held")
    assert another.reply("say free") == "free"
    room.go("side")
    assert room.answer(held)["ok"] is True


def test_events_count_up_name_their_turn_and_precede_its_response(daemon: Host, room: Room) -> None:
    room.open("early=2")
    room.reply("say a\nsay b\ntool t completed")
    room.reply("say c")
    frames = room.frames()
    events = [f for f in frames if "event" in f]
    sequence = [event["seq"] for event in events]
    assert sequence == list(range(sequence[0], sequence[0] + len(sequence)))
    assert [event["turn"] for event in events] == [None, None, 1, 1, 1, 2]
    answers = [f for f in frames if f.get("outcome")]
    for turn, answer in enumerate(answers, 1):
        last = [event for event in events if event["turn"] == turn][-1]
        assert frames.index(last) < frames.index(answer)


def test_an_event_s_update_is_the_agent_s_own(room: Room) -> None:
    room.open()
    update = {"sessionUpdate": "mood_update", "mood": 1.0, "_meta": {"a.b/c": [1, {"d": None}]}}
    room.reply(f"update {json.dumps(update)}\nsay x")
    assert room.events("update")[0]["update"] == update


def test_modes_and_notices_are_events_of_their_own_too(daemon: Host, room: Room) -> None:
    room.open()
    notice = {"sessionUpdate": "notice", "severity": "warning", "title": "é", "_meta": {"x": 1}}
    mode = {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}
    room.reply(f"update {json.dumps(notice)}\nupdate {json.dumps(mode)}\nsay x")
    order = [event["event"] for event in room.events()]
    assert order[:4] == ["update", "notice", "update", "mode"]
    (told,) = room.events("notice")
    assert (told["severity"], told["title"], told["description"]) == ("warning", "é", None)
    (told,) = room.events("mode")
    assert (told["mode_id"], told["turn"]) == ("plan", 1)
    daemon.hello("mode")
    try:
        room.reply(f"update {json.dumps(mode)}\nsay x")
        assert len(room.events("mode")) == 2
        assert len(room.events("update")) == 3
    finally:
        daemon.hello()


def test_late_text_is_waited_for_when_there_is_none(room: Room) -> None:
    room.open()
    response = room.prompt("late after all")
    assert response["result"]["reply"] == "after all"
    assert room.events("update")[-1]["turn"] == 1


def test_late_text_behind_a_reply_is_not_and_counts_to_no_other_turn(room: Room) -> None:
    room.open()
    assert room.reply("say now\nlate later") == "now"
    room.said("later")
    assert room.reply("say next") == "next"
    (late,) = [e for e in room.events("update") if e["update"]["content"]["text"] == "later"]
    assert late["turn"] is None


@pytest.mark.parametrize("reason", ["cancelled", "refusal"])
def test_after_a_cancel_or_refusal_no_text_is_waited_for(room: Room, reason: str) -> None:
    room.open()
    response = room.prompt(f"stop {reason}\nlate too late")
    assert response["result"] == {
        "reply": "",
        "stop_reason": reason,
        "response_metadata": {},
        "update_metadata": [],
    }
    room.said("too late")


def test_an_error_of_the_agent_keeps_what_came(room: Room) -> None:
    room.open()
    error = {"code": -32603, "message": "Internal error", "data": {"details": "why", "n": [1]}}
    response = room.prompt(f"say part\nerror {json.dumps(error)}")
    assert response["error"] == "why"
    assert (response["code"], response["origin"]) == ("agent_error", "agent")
    assert (response["agent_code"], response["error_data"]) == (-32603, error["data"])
    assert response["result"]["reply"] == "part"
    assert set(response["result"]) == FOUR
    assert room.reply("say on") == "on"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ('{"jsonrpc":"2.0","id":$ID,"error":"just words"}', "just words"),
        ('{"jsonrpc":"2.0","id":$ID,"error":{}}', "{}"),
        ('{"jsonrpc":"2.0","id":$ID}', "neither result nor error"),
        ('{"jsonrpc":"2.0","id":$ID,"result":{"stopReason":5}}', "cannot be read"),
        ('{"jsonrpc":"2.0","id":$ID,"result":{"usage":[]}}', "cannot be read"),
        (
            '{"jsonrpc":"2.0","id":$ID,"result":{"stopReason":"end_turn","_meta":%s}}'
            % ("[" * 2000 + "]" * 2000),
            "cannot be read",
        ),
    ],
)
def test_an_answer_of_any_shape_ends_the_turn_with_words(
    room: Room, answer: str, words: str
) -> None:
    room.open()
    response = room.prompt(f"say part\nanswer {answer}", seconds=SOON)
    assert response["ok"] is False
    assert words in response["error"]
    assert response["result"]["reply"] == "part"
    assert room.reply("say on") == "on"


@pytest.mark.parametrize("result", ["null", "{}", '"done"', "[]"])
def test_an_answer_that_says_nothing_is_an_answer(room: Room, result: str) -> None:
    room.open()
    response = room.prompt(f'say x\nanswer {{"jsonrpc":"2.0","id":$ID,"result":{result}}}')
    assert response["ok"] is True
    assert (response["result"]["reply"], response["result"]["stop_reason"]) == ("x", None)


def test_what_only_javascript_or_python_writes_reaches_the_host(room: Room) -> None:
    room.open()
    head = 'raw {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
    odd = [
        '{"sessionUpdate":"odd","text":"\\ud83d"}',
        '{"sessionUpdate":"odd","number":NaN}',
        '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\\udc00!"}}',
    ]
    reply = room.reply("\n".join(head + update + "}}" for update in odd))
    assert reply == "\udc00!"
    first, second, third = [event["update"] for event in room.events("update")]
    assert first == {"sessionUpdate": "odd", "text": "\ud83d"}
    assert second == {"sessionUpdate": "odd", "number": None}
    assert third["content"]["text"] == "\udc00!"


@pytest.mark.parametrize("depth", [900, 960, 985, 2000])
def test_nesting_in_a_prompt_is_sent_or_refused_and_the_session_goes_on(
    room: Room, depth: int
) -> None:
    room.open()
    nested = "[" * depth + "]" * depth
    body = json.dumps(
        {
            "id": f"{room.name}-deep",
            "operation": "prompt",
            "session": room.name,
            "config": {"user_contents": [[{"type": "resource_link", "x": "X"}], "say ok"]},
        }
    ).replace('"X"', nested)
    room.host.raw(len(body).to_bytes(8, "big") + body.encode())
    assert room.reply("say on") == "on"
    answers = [f for f in room.frames() if f.get("id") in (f"{room.name}-deep", None)]
    answers = [f for f in answers if "event" not in f]
    assert len(answers) == 1
    assert answers[0]["ok"] or answers[0]["code"] == "invalid_request"
    assert room.ok("cancel") == {}


# settings of later prompts


def test_a_later_prompt_may_change_who_answers_permission_requests(room: Room) -> None:
    room.open()
    options = [
        {"optionId": "y", "kind": "allow_once", "name": "y"},
        {"optionId": "n", "kind": "reject_once", "name": "n"},
    ]
    ask = f"permission {json.dumps(options)}"
    assert '"y"' in room.reply(ask)
    assert '"n"' in room.reply(ask, permission="deny")
    assert '"n"' in room.reply(ask)
    running = room.start(ask, permission="ask")
    event = room.event("permission")
    assert event["turn"] == 4
    room.ok("permission", request_id=event["request_id"], outcome="allow")
    assert '"y"' in room.answer(running)["result"]["reply"]


def test_asking_a_host_that_does_not_listen_is_refused(daemon: Host, room: Room) -> None:
    daemon.hello("update")
    try:
        words = room.refused("open", "invalid_request", config=room.config(permission="ask"))
        assert "hello" in words
        room.open()
        response = room.prompt("say x", permission="ask")
        assert response["code"] == "invalid_request"
        assert room.reply("say on") == "on"
    finally:
        daemon.hello()
