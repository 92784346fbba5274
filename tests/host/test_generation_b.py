"""Hosts of the second generation on the real daemon: HOST_PROTOCOL §3, sentence by sentence."""

import json
from typing import Any

import pytest

from tests.conftest import Spawn
from tests.peers.agent import scripted
from tests.peers.host import Host, config
from tests.peers.processes import wait_until
from tests.peers.servers import tool_gate
from tests.session.room import FOUR, SOON

YES = {"optionId": "y", "kind": "allow_once", "name": "y"}
NO = {"optionId": "n", "kind": "reject_once", "name": "n"}
ALWAYS = {"optionId": "a", "kind": "allow_always", "name": "a"}


def start(spawn: Spawn, *arguments: str) -> Host:
    return spawn(*arguments, generation="B")


def permission(*options: dict[str, Any], **call: Any) -> str:
    tool_call = {"toolCallId": "call-1", "rawInput": {"a": 1}} | call
    return f"permission {json.dumps(options)} {json.dumps(tool_call)}"


def test_a_response_has_its_request_s_id_and_exactly_four_keys(spawn: Spawn, loop: str) -> None:
    host = start(spawn, "--loop", loop)
    for ident in (7, "seven", 0, "", 2**60):
        settings = config("B", ["say hi"], scripted())
        host.raw(host.frame({"id": ident, "operation": "prompt", "config": settings}))
        response = host.wait(lambda ident=ident: [f for f in host.frames if f["id"] == ident])[0]
        assert response["ok"] is True
        assert response["result"] == {
            "reply": "hi",
            "stop_reason": "end_turn",
            "response_metadata": {},
            "update_metadata": [],
        }
    assert host.shutdown()["result"] == {"response_metadata": {}}
    assert not any("event" in frame for frame in host.frames)


@pytest.mark.parametrize(
    "failing",
    [
        {"contents": ["exit 3"]},
        {"contents": ['error {"code":1,"message":"no"}']},
        {"contents": []},
        {"contents": [[{"type": "video"}]]},
        {"contents": ["x"], "agent": ["/no/such/agent"]},
        {"contents": ["x"], "agent": []},
        {"contents": ["x"], "turn_timeout": "soon"},
        {"contents": ["hang"], "turn_timeout": 0.1, "close_grace": 0.1},
        {"contents": ["x"], "agent": scripted("initialize=silent"), "start_timeout": 0.1},
    ],
)
def test_failed_prompts_have_the_four_keys_too(spawn: Spawn, failing: dict[str, Any]) -> None:
    host = start(spawn)
    contents, agent = failing.pop("contents"), failing.pop("agent", scripted())
    response = host.answer(host.start(agent, *contents, **failing), SOON)
    assert response["ok"] is False
    assert isinstance(response["error"], str)
    assert set(response["result"]) == FOUR
    assert response["result"]["stop_reason"] is None
    assert response["result"]["update_metadata"] == []
    host.shutdown()


def test_metadata_of_updates_and_of_the_response(spawn: Spawn) -> None:
    host = start(spawn)
    updates = [
        {"sessionUpdate": "x", "_meta": {"a": 1}},
        {"sessionUpdate": "y"},
        {"sessionUpdate": "z", "_meta": {"b": {"c": [1.5, None]}}},
    ]
    words = "\n".join(f"update {json.dumps(update)}" for update in updates)
    both = {"sessionId": "s", "update": {"sessionUpdate": "w", "_meta": {"k": 1}}}
    both["_meta"] = {"k": 0, "l": 2}
    raw = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": both})
    result = host.prompt(scripted(), f'{words}\nraw {raw}\nsay x\nresult {{"_meta":{{"r":1}}}}')
    assert result["result"]["update_metadata"] == [
        {"a": 1},
        {"b": {"c": [1.5, None]}},
        {"k": 1, "l": 2},
    ]
    assert result["result"]["response_metadata"] == {"r": 1}
    host.shutdown()


def test_prompts_overlap_and_a_steer_overtakes_them(spawn: Spawn, loop: str) -> None:
    host = start(spawn, "--loop", loop)
    agent = scripted("with=steering")
    running = host.start(agent, "wait steer")
    waiting = host.start(agent, "say later")
    assert wait_until(lambda: host.log.messages("session/prompt"))
    steer = host.send("steer", message="also X", message_id="m1")
    assert host.answer(steer)["result"] == {"outcome": "injected"}
    assert "also X" in host.answer(running)["result"]["reply"]
    assert host.answer(waiting)["result"]["reply"] == "later"
    order = [frame["id"] for frame in host.frames]
    assert order == [steer, running, waiting] or order == [running, steer, waiting]
    host.shutdown()


def test_before_the_session_exists_a_steer_s_receipt_says_so(spawn: Spawn) -> None:
    host = start(spawn)
    receipt = host.call("steer", message="m", message_id="m1")["result"]
    assert receipt == {"outcome": "promptRequired", "reason": "noRunningTurn"}
    host.shutdown()


def test_contents_are_joined_and_the_system_prompt_goes_first(spawn: Spawn) -> None:
    host = start(spawn)
    link = {"type": "resource_link", "uri": "u", "name": "n"}
    host.prompt(scripted(), "a", [link], "say b", system_prompt="be nice")
    host.prompt(scripted(), "say c", system_prompt="be nice")
    assert host.log.prompts() == [
        [
            {"type": "text", "text": "(system)\nbe nice\n\n[user]\n"},
            {"type": "text", "text": "a"},
            {"type": "text", "text": "\n\n"},
            link,
            {"type": "text", "text": "\n\n"},
            {"type": "text", "text": "say b"},
        ],
        [{"type": "text", "text": "say c"}],
    ]
    host.shutdown()


@pytest.mark.parametrize(
    ("options", "chosen"),
    [([ALWAYS, YES, NO], "y"), ([NO, ALWAYS], "a"), ([NO], None), ([], None)],
)
def test_without_a_gate_the_narrowest_allowance_is_chosen(
    spawn: Spawn, options: list[dict[str, Any]], chosen: str | None
) -> None:
    host = start(spawn)
    outcome = json.loads(host.reply(scripted(), permission(*options)))["outcome"]
    assert outcome == (
        {"outcome": "cancelled"} if chosen is None else {"outcome": "selected", "optionId": chosen}
    )
    host.shutdown()


def test_a_gate_is_asked_about_every_tool_call(spawn: Spawn, loop: str) -> None:
    host = start(spawn, "--loop", loop)
    with tool_gate() as gate:
        verdicts = {"call-1": "allow", "call-2": "deny"}
        gate.decide = lambda question: verdicts[question["tool_call_id"]]
        two = {"toolCallId": "call-2", "rawInput": None}
        words = f"{permission(YES, NO)}\n{permission(YES, NO, **two)}"
        reply = host.reply(scripted(), words, tool_interception=gate.interception)
        assert '"optionId": "y"' in reply
        assert '"optionId": "n"' in reply
        assert gate.asked == [
            {"tool_call_id": "call-1", "arguments": {"a": 1}},
            {"tool_call_id": "call-2", "arguments": None},
        ]
        again = host.reply(scripted(), permission(YES), tool_interception=gate.interception)
        assert '"optionId": "y"' in again
        host.shutdown()
    assert gate.secret not in host.stderr()


def test_a_gate_s_stop_ends_the_turn_and_its_late_text_reaches_no_other(
    spawn: Spawn, loop: str
) -> None:
    host = start(spawn, "--loop", loop)
    with tool_gate() as gate:
        gate.decide = lambda question: "stop"
        words = f"say part\noncancel text: LATE\n{permission(YES)}\nwait cancel"
        response = host.prompt(scripted(), words, tool_interception=gate.interception)
        assert response["ok"] is True
        assert response["result"]["stop_reason"] == "cancelled"
        assert response["result"]["reply"].startswith("part")
        assert len(host.log.messages("session/cancel")) == 1
        gate.decide = lambda question: "allow"
        interception = gate.interception
        assert host.reply(scripted(), "say next", tool_interception=interception) == "next"
        host.shutdown()


def test_after_a_stop_the_gate_is_not_asked_again_in_that_turn(spawn: Spawn) -> None:
    host = start(spawn)
    with tool_gate() as gate:
        gate.decide = lambda question: "stop"
        words = f"oncancel ignore\n{permission(YES)}\n{permission(YES)}"
        response = host.prompt(scripted(), words, tool_interception=gate.interception)
        assert response["result"]["stop_reason"] == "cancelled"
        assert response["result"]["reply"].count('"cancelled"') == 2
        assert len(gate.asked) == 1
        host.shutdown()


def test_a_gate_that_cannot_be_reached_denies(spawn: Spawn) -> None:
    host = start(spawn)
    with tool_gate() as gate:
        gone = gate.interception
    reply = host.reply(scripted(), permission(YES, NO), tool_interception=gone)
    assert '"optionId": "n"' in reply
    assert "gate" in host.stderr()
    host.shutdown()


def test_a_wrapped_confirmation_is_asked_about_as_what_it_is(spawn: Spawn) -> None:
    host = start(spawn)
    with tool_gate() as gate:
        raw = {"method": "confirm", "title": "real-7", "message": '{"path":"/x"}'}
        words = permission(YES, toolCallId="pi-ui-1", rawInput=raw)
        host.reply(scripted(), words, tool_interception=gate.interception)
        assert gate.asked == [{"tool_call_id": "real-7", "arguments": {"path": "/x"}}]
        host.shutdown()


def test_a_request_error_s_data_is_given_whole(spawn: Spawn) -> None:
    host = start(spawn)
    error = {"code": -32603, "message": "short", "data": {"details": "why", "n": [1, None]}}
    response = host.prompt(scripted(), f"say part\nerror {json.dumps(error)}")
    assert (response["error"], response["error_data"]) == ("why", error["data"])
    assert response["result"]["reply"] == "part"
    host.shutdown()


def test_a_shutdown_with_a_turn_running_ends_it_as_cancelled(spawn: Spawn, loop: str) -> None:
    host = start(spawn, "--loop", loop)
    running = host.start(scripted('close_meta={"cost":1}'), "say part\nwait cancel")
    waiting = host.start(None, "say never")
    assert wait_until(lambda: host.log.messages("session/prompt"))
    response = host.shutdown()
    assert response["result"] == {"response_metadata": {"cost": 1}}
    answers = [host.answer(running), host.answer(waiting)]
    assert [answer["ok"] for answer in answers] == [True, True]
    assert [a["result"]["stop_reason"] for a in answers] == ["cancelled"] * 2
    assert answers[0]["result"]["reply"] == "part"


def test_headers_and_servers_reach_the_agent_without_the_proxy(spawn: Spawn) -> None:
    host = start(spawn, "--mcp-proxy", "off")
    url = "http://127.0.0.1:9/mcp"
    headers = {"t": {"Authorization": "Bearer x"}, "none": {"X": "y"}}
    host.prompt(scripted(), "say x", mcp_urls={"t": url}, mcp_headers=headers)
    (new,) = host.log.messages("session/new")
    header = {"name": "Authorization", "value": "Bearer x"}
    assert new["params"]["mcpServers"] == [
        {"type": "http", "name": "t", "url": url, "headers": [header]}
    ]
    host.shutdown()
