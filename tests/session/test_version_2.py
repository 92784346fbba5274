"""ACP version 2 through the real daemon, on the three loops: a host that knows version 1 sees the
same events and results."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.peers.servers import tool_gate
from tests.session.room import FOUR, Room
from tests.session.version_2 import OPTIONS, call, config, faults, kinds, opened

CALL = {"toolCallId": "c1", "title": "run", "rawInput": {"command": "ls"}}


@pytest.fixture(autouse=True)
def _only_what_the_schema_has(room: Room) -> Iterator[None]:
    yield
    assert list(faults(room.log)) == []


def test_open_says_what_version_1_says(room: Room) -> None:
    result = opened(room, "mode=a")
    assert result["protocol_version"] == 2
    assert result["agent"] == {"name": "scripted", "version": "2"}
    can = result["capabilities"]
    assert can["loadSession"] is True
    assert can["promptCapabilities"] == {"image": True, "audio": False, "embeddedContext": True}
    assert can["mcpCapabilities"]["http"] is True
    assert set(can["sessionCapabilities"]) >= {"list", "resume", "close", "delete", "fork"}
    assert can["session"]["prompt"]["image"] == {}
    assert result["modes"]["currentModeId"] == "a"
    assert [mode["id"] for mode in result["modes"]["availableModes"]] == ["a", "b"]
    assert result["config_options"][0]["id"] == "how"
    assert result["auth_methods"][0]["id"] == "key"


def test_both_versions_are_offered_in_one_initialize(room: Room) -> None:
    opened(room, client_capabilities={"auth": {"terminal": True}})
    [asked] = room.log.messages("initialize")
    params = asked["params"]
    assert params["protocolVersion"] == 2
    assert params["info"] == params["clientInfo"]
    assert params["capabilities"] == {"auth": {"terminal": {}}}
    assert params["clientCapabilities"]["session"]["notices"] == {}


def test_a_turn_ends_with_the_idle_state(room: Room) -> None:
    opened(room)
    end = {"usage": {"totalTokens": 3, "inputTokens": 2, "outputTokens": 1}, "_meta": {"k": "v"}}
    response = room.prompt(f"say hello\nresult {json.dumps(end)}")
    assert response["ok"] is True
    assert set(response["result"]) == FOUR
    assert response["result"] == {
        "reply": "hello",
        "stop_reason": "end_turn",
        "response_metadata": {"k": "v"},
        "update_metadata": [],
    }
    assert (response["outcome"], response["usage"]) == ("completed", end["usage"])
    assert kinds(room, 1) == [
        "user_message_chunk", "state_update", "agent_message_chunk", "state_update"
    ]  # fmt: skip
    frames = room.frames()
    assert frames.index(room.events("update")[-1]) < frames.index(response)
    assert room.reply("say again") == "again"
    assert room.events("turn") == []


@pytest.mark.parametrize(
    ("program", "reply"),
    [
        ("id a one\nid b two", "two"),
        ("id a one \nid b two\nid a more\nid b !", "two!"),
        ('whole a [{"type":"text","text":"whole"}]', "whole"),
        ('id a lo\nwhole a [{"type":"text","text":"other"}]\nid a !', "other!"),
        ("id a said\nid b gone\nwhole b null", "said"),
        ("id a kept\nwhole a", "kept"),
    ],
)
def test_the_reply_is_the_last_message(room: Room, program: str, reply: str) -> None:
    opened(room)
    assert room.reply(program) == reply


def test_a_message_that_comes_whole_is_told_in_chunks(room: Room) -> None:
    opened(room)
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert room.reply(f"whole m {json.dumps(blocks)}") == "ab"
    told = [e["update"] for e in room.events("update", turn=1)][-3:-1]
    assert [update["sessionUpdate"] for update in told] == ["agent_message_chunk"] * 2
    assert [update["content"] for update in told] == blocks
    assert {update["messageId"] for update in told} == {"m"}


def test_tool_calls_are_begun_and_updated_as_in_version_1(room: Room) -> None:
    opened(room)
    item = {"type": "content", "content": {"type": "text", "text": "x"}}
    chunk = {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c1", "content": item}
    room.reply(
        "\n".join(
            [
                call(toolCallId="c1", name="sh", rawInput={"a": 1}),
                call(toolCallId="c1", title="run", status="in_progress"),
                f"update {json.dumps(chunk)}",
                f"update {json.dumps(chunk)}",
                call(toolCallId="c1", title=None, status="cancelled"),
                "say done",
            ]
        )
    )
    events = [e for e in room.events("update") if e["update"].get("toolCallId")]
    begun, named, first, second, over = (event["update"] for event in events)
    assert begun == {
        "sessionUpdate": "tool_call", "toolCallId": "c1", "title": "sh", "name": "sh",
        "rawInput": {"a": 1},
    }  # fmt: skip
    assert (named["sessionUpdate"], named["title"]) == ("tool_call_update", "run")
    assert first == second == chunk
    assert (over["status"], over["title"], over["content"]) == ("failed", "", [item, item])
    original = {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "title": None}
    assert events[-1]["original"] == original | {"status": "cancelled"}
    assert all("original" not in event for event in events[:-1])


@pytest.mark.parametrize(("answer", "option"), [("allow", "yes"), ("deny", "no")])
def test_a_permission_is_asked_for_with_the_whole_call(
    room: Room, answer: str, option: str
) -> None:
    opened(room, permission="ask")
    subject = {"type": "tool_call", "toolCall": {"toolCallId": "c1", "status": "pending"}}
    params = {"title": "May it?", "subject": subject, "options": OPTIONS}
    running = room.start(f"{call(**CALL)}\npermission {json.dumps(params)}")
    event = room.event("permission")
    assert event["tool_call"] == CALL | {"status": "pending"}
    assert event["options"] == OPTIONS
    assert event["original"] == {"sessionId": "s-1", **params}
    room.ok("permission", request_id=event["request_id"], outcome=answer)
    said = json.loads(room.answer(running)["result"]["reply"])
    assert said == {"outcome": {"outcome": "selected", "optionId": option}}


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (
            {"type": "command", "command": "ls", "cwd": "/", "toolCallId": "c9"},
            {"toolCallId": "c9", "kind": "execute", "rawInput": {"command": "ls", "cwd": "/"}},
        ),
        ({"type": "_x", "y": 1}, {"toolCallId": "", "rawInput": {"type": "_x", "y": 1}}),
        (None, {"toolCallId": ""}),
    ],
)
def test_a_permission_for_anything_else_has_a_call_too(
    room: Room, subject: Any, expected: dict[str, Any]
) -> None:
    opened(room, permission="ask")
    params = {"title": "May it?", "subject": subject, "options": OPTIONS}
    running = room.start(f"permission {json.dumps(params)}")
    event = room.event("permission")
    assert event["tool_call"] == {"title": "May it?", **expected}
    room.ok("permission", request_id=event["request_id"], outcome={"option_id": "no"})
    room.answer(running)


def test_a_permission_that_is_taken_back_is_answered_cancelled(room: Room) -> None:
    opened(room, permission="ask")
    reply = room.reply(f"takeback {json.dumps({'title': 'May it?', 'options': OPTIONS})}")
    assert json.loads(reply) == {"outcome": {"outcome": "cancelled"}}


def test_load_is_a_resume_that_replays(room: Room) -> None:
    result = room.ok("load", session_id="old", config=config(room, "replay=as before", "mode=b"))
    assert (result["session_id"], result["modes"]["currentModeId"]) == ("old", "b")
    [asked] = room.log.messages("session/resume")
    assert asked["params"]["replayFrom"] == {"type": "start"}
    replayed = room.events("update", replay=True)
    assert "as before" in [e["update"].get("content", {}).get("text") for e in replayed
                           if isinstance(e["update"].get("content"), dict)]  # fmt: skip
    assert len(replayed) == len(room.events("update"))
    assert room.reply("say on") == "on"


def test_resume_does_not_replay(room: Room) -> None:
    room.ok("resume", session_id="old", config=config(room))
    [asked] = room.log.messages("session/resume")
    assert "replayFrom" not in asked["params"]
    assert room.reply("say on") == "on"


def test_a_mode_is_set_as_the_option_that_it_is(room: Room) -> None:
    opened(room, "mode=a")
    assert room.ok("set_mode", mode_id="b") == {}
    [asked] = room.log.messages("session/set_config_option")
    assert asked["params"] == {"sessionId": "s-1", "configId": "how", "type": "id", "value": "b"}
    assert room.event("mode")["mode_id"] == "b"
    answer = room.ok("set_config_option", config_id="how", value="a")
    assert (answer["configOptions"][0]["id"], answer["configOptions"][0]["currentValue"]) == (
        "how",
        "a",
    )


def test_an_agent_without_modes_says_so(room: Room) -> None:
    opened(room)
    assert "modes" in room.refused("set_mode", "unsupported", mode_id="b")


def test_what_was_renamed_is_asked_for_by_its_name(room: Room) -> None:
    opened(room)
    assert room.ok("authenticate", method_id="key") == {}
    room.ok("list_sessions")
    room.ok("delete_session", session_id="x")
    assert room.ok("fork", new_session=f"{room.name}-fork")["session_id"] == "s-2"
    room.host.call("close", session=f"{room.name}-fork")
    assert {"auth/login", "session/list", "session/delete", "session/fork"} <= set(
        room.log.methods()
    )


def test_one_call_or_terminal_is_cancelled_while_it_says_it_can_be(room: Room) -> None:
    opened(room)
    can = {"capabilities": {"cancel": {}}}
    terminal = {"sessionUpdate": "terminal_update", "terminalId": "t", **can}
    running = room.start(
        f"{call(toolCallId='c', **can)}\nupdate {json.dumps(terminal)}\nsay up\n{room.gate('on')}\n"
        f"{call(toolCallId='c', status='completed')}\nsay over\n{room.gate('off')}"
    )
    room.said("up")
    assert room.ok("cancel_tool_call", tool_call_id="c") == {}
    assert room.ok("cancel_terminal", terminal_id="t") == {}
    room.refused("cancel_terminal", "unsupported", terminal_id="other")
    room.go("on")
    room.said("over")
    room.refused("cancel_tool_call", "unsupported", tool_call_id="c")
    room.go("off")
    room.answer(running)
    [sent] = room.log.messages("tool_call/cancel")
    assert sent["params"] == {"sessionId": "s-1", "toolCallId": "c"}


def test_a_subagent_says_and_asks_for_the_session_it_works_for(room: Room) -> None:
    opened(room, permission="ask")
    announced = {"sessionUpdate": "subagent_update", "sessionId": "kid"}
    bodies = [
        {"sessionUpdate": "state_update", "state": "running"},
        {"sessionUpdate": "tool_call_update", **CALL},
        {"sessionUpdate": "agent_message", "messageId": "k", "content": [
            {"type": "text", "text": "from the kid"}]},
    ]  # fmt: skip
    subject = {"type": "tool_call", "toolCall": {"toolCallId": "c1"}}
    asked = {"sessionId": "kid", "title": "May it?", "subject": subject, "options": OPTIONS}
    program = [
        f"update {json.dumps(announced)}",
        *(f"notify session/update {json.dumps({'sessionId': 'kid', 'update': b})}" for b in bodies),
        f"permission {json.dumps(asked)}",
    ]
    running = room.start("\n".join(program))
    event = room.event("permission")
    assert event["tool_call"] == CALL
    room.ok("permission", request_id=event["request_id"], outcome="allow")
    assert json.loads(room.answer(running)["result"]["reply"])["outcome"]["optionId"] == "yes"
    told = room.events("subagent", subagent="kid", turn=1)
    assert [e["update"]["sessionUpdate"] for e in told] == [
        "state_update",
        "tool_call",
        "agent_message_chunk",
    ]
    assert "from the kid" not in room.texts(turn=1)
    assert room.events("turn") == []


def test_a_gate_is_asked_with_the_arguments_that_came_before(room: Room) -> None:
    with tool_gate() as gate:
        gate.decide = lambda _question: "deny"
        opened(room, tool_interception={"url": gate.url, "secret": gate.secret})
        subject = {"type": "tool_call", "toolCall": {"toolCallId": "c1"}}
        params = {"title": "May it?", "subject": subject, "options": OPTIONS}
        reply = room.reply(f"{call(**CALL)}\npermission {json.dumps(params)}")
    assert json.loads(reply)["outcome"]["optionId"] == "no"
    assert gate.asked == [{"tool_call_id": "c1", "arguments": CALL["rawInput"]}]


def test_servers_have_a_type(room: Room) -> None:
    server = {"name": "x", "command": "/bin/true", "args": [], "env": []}
    opened(room, mcp_servers=[server], mcp_proxy="off")
    [asked] = room.log.messages("session/new")
    assert asked["params"]["mcpServers"] == [{"type": "stdio", **server}]


def test_closing_ends_it(room: Room) -> None:
    opened(room)
    room.ok("close")
    assert room.log.methods()[-1] == "session/close"
