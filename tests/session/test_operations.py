"""Every operation of the native generation, on the real daemon (HOST_PROTOCOL §4)."""

import json
from typing import Any

import pytest

from tests.conftest import Spawn
from tests.peers.agent import scripted
from tests.peers.host import Host
from tests.peers.processes import wait_until
from tests.session.room import FOUR, SOON, Room

OPERATIONS = {
    *("hello", "open", "prompt", "steer", "send", "cancel", "resume", "load", "fork"),
    *("set_mode", "set_config_option", "list_sessions", "delete_session", "permission"),
    *("elicitation", "authenticate", "call_tool", "list_tools", "status", "close", "shutdown"),
    *("cancel_tool_call", "cancel_terminal"),
}


def test_hello_says_what_is_spoken(daemon: Host) -> None:
    result = daemon.call("hello", protocol=1, client={}, events=["turn", "nonsense"])["result"]
    assert result["protocol"] == 1
    assert result["daemon"]["name"] == "acp-mcp-bridge"
    assert set(result["operations"]) == OPERATIONS
    assert result["events"] == ["turn"]
    assert result["limits"]["packet_bytes"] == 128 << 20
    assert result["limits"]["agent_line_bytes"] == 256 << 20
    daemon.hello()


@pytest.mark.parametrize("protocol", [0, 2, 99])
def test_another_protocol_is_unsupported_and_the_spoken_ones_named(
    daemon: Host, protocol: int
) -> None:
    response = daemon.call("hello", protocol=protocol)
    assert (response["ok"], response["code"]) == (False, "unsupported")
    assert response["protocols"] == [1]
    assert "1" in response["error"]


def test_an_unknown_operation_is_named_with_those_there_are(daemon: Host) -> None:
    response = daemon.call("frobnicate")
    assert (response["ok"], response["code"]) == (False, "invalid_request")
    assert "frobnicate" in response["error"]
    assert all(name in response["error"] for name in OPERATIONS)


@pytest.mark.parametrize(
    ("operation", "fields", "place"),
    [
        ("open", {}, "config"),
        ("open", {"config": {"command": "x"}}, "config.command"),
        ("prompt", {"config": {"turn_timeout": "soon"}}, "config.turn_timeout"),
        ("prompt", {"config": 7}, "config"),
        ("prompt", {"session": 7}, "session"),
        ("steer", {}, "message"),
        ("send", {"message": "m", "mode": "now"}, "mode"),
        ("resume", {}, "session_id"),
        ("fork", {}, "new_session"),
        ("set_mode", {}, "mode_id"),
        ("permission", {"request_id": "x", "outcome": 5}, "outcome"),
        ("elicitation", {"request_id": "x", "action": "maybe"}, "action"),
        ("hello", {"protocol": "one"}, "protocol"),
    ],
)
def test_a_field_that_is_wrong_is_named(
    daemon: Host, room: Room, operation: str, fields: dict[str, Any], place: str
) -> None:
    room.open()
    named = {"session": room.name} | fields
    response = daemon.call(operation, **named)
    assert (response["ok"], response["code"], response["origin"]) == (
        False,
        "invalid_request",
        "host",
    )
    assert place in response["error"]
    if operation == "prompt":
        assert set(response["result"]) == FOUR


NEEDS_A_SESSION = [
    ("set_mode", {"mode_id": "x"}),
    ("set_config_option", {"config_id": "x", "value": True}),
    ("list_sessions", {}),
    ("delete_session", {"session_id": "x"}),
    ("authenticate", {"method_id": "x"}),
    ("send", {"message": "m"}),
    ("permission", {"request_id": "x", "outcome": "allow"}),
    ("elicitation", {"request_id": "x", "action": "accept"}),
    ("fork", {"new_session": "x"}),
    ("close", {}),
]


@pytest.mark.parametrize(("operation", "fields"), NEEDS_A_SESSION)
def test_what_needs_a_session_says_so(daemon: Host, operation: str, fields: dict[str, Any]) -> None:
    response = daemon.call(operation, session="never opened", **fields)
    assert (response["ok"], response["code"]) == (False, "invalid_request")
    assert "never opened" in response["error"]


def test_cancel_and_steer_need_none(daemon: Host) -> None:
    assert daemon.call("cancel", session="never opened")["result"] == {}
    receipt = daemon.call("steer", session="never opened", message="m")["result"]
    assert receipt == {"outcome": "promptRequired", "reason": "noRunningTurn"}


def test_open_tells_what_the_agent_is_and_can(room: Room) -> None:
    result = room.open("session=s-1", "modes=1", "without=fork")
    assert result["session_id"] == "s-1"
    assert result["agent"] == {"name": "scripted", "version": "1"}
    assert result["protocol_version"] == 1
    assert result["capabilities"]["loadSession"] is True
    assert "fork" not in result["capabilities"]["sessionCapabilities"]
    assert result["modes"]["currentModeId"] == "code"
    assert (result["config_options"], result["auth_methods"]) == (None, [])
    assert room.log.methods() == ["initialize", "session/new"]


def test_opening_twice_is_refused_and_the_session_goes_on(room: Room) -> None:
    room.open()
    assert "open already" in room.refused("open", "invalid_request", config=room.config())
    assert "open already" in room.refused("load", "invalid_request", session_id="x", config={})
    assert room.reply("say hi") == "hi"


def test_what_the_agent_gets_of_the_config(room: Room) -> None:
    stdio = {"name": "b", "command": "/b", "args": [], "env": []}
    room.open(
        mcp_servers=[stdio],
        cwd=str(room.directory),
        session_meta={"k": {"v": 1}},
        client_capabilities={"_meta": {"x": 1}, "session": {"own": {}}},
        mcp={"b": {"proxy": False}},
    )
    (params,) = [m["params"] for m in room.log.messages("session/new")]
    assert params["cwd"] == str(room.directory)
    assert params["_meta"] == {"k": {"v": 1}}
    assert [server["name"] for server in params["mcpServers"]] == ["b"]
    (initialize,) = [m["params"] for m in room.log.messages("initialize")]
    capabilities = initialize["clientCapabilities"]
    assert capabilities["_meta"] == {"x": 1}
    assert set(capabilities["session"]) == {"own", "notices", "compaction", "configOptions"}
    assert not {"fs", "terminal", "elicitation"} & set(capabilities)
    assert initialize["clientInfo"]["name"] == "acp-mcp-bridge"


def test_additional_directories_need_the_agent_s_word(room: Room) -> None:
    words = room.refused("open", "unsupported", config=room.config(additional_directories=["/tmp"]))
    assert "additionalDirectories" in words


@pytest.mark.parametrize("service", ["fs", "terminal", "elicitation"])
def test_services_are_advertised_only_when_asked_for(room: Room, service: str) -> None:
    room.open(client_services=[service])
    (initialize,) = [m["params"] for m in room.log.messages("initialize")]
    found = {"fs", "terminal", "elicitation"} & set(initialize["clientCapabilities"])
    assert found == {service}


def test_a_mode_and_an_option_are_set(room: Room) -> None:
    room.open("modes=1", 'set_config_option={"configOptions":[{"id":"a","currentValue":true}]}')
    assert room.ok("set_mode", mode_id="ask") == {}
    (mode,) = room.log.messages("session/set_mode")
    assert mode["params"] == {"sessionId": "s", "modeId": "ask"}
    result = room.ok("set_config_option", config_id="a", value=True)
    assert result == {"configOptions": [{"id": "a", "currentValue": True}]}
    room.ok("set_config_option", config_id="b", value="word")
    boolean, text = [m["params"] for m in room.log.messages("session/set_config_option")]
    assert boolean == {"sessionId": "s", "configId": "a", "value": True, "type": "boolean"}
    assert text == {"sessionId": "s", "configId": "b", "value": "word"}


def test_an_agent_s_error_keeps_its_code_words_and_data(room: Room) -> None:
    error = {"code": -32602, "message": "short", "data": {"details": "no such mode", "x": 1}}
    room.open(f'set_mode=raw:{{"jsonrpc":"2.0","id":$ID,"error":{json.dumps(error)}}}')
    response = room.call("set_mode", mode_id="nope")
    assert response["error"] == "no such mode"
    assert (response["code"], response["origin"]) == ("agent_error", "agent")
    assert (response["agent_code"], response["error_data"]) == (-32602, error["data"])


def test_sessions_are_listed_and_deleted_as_the_agent_answers(room: Room) -> None:
    room.open("session=s-1")
    assert room.ok("list_sessions") == {"sessions": [{"sessionId": "s-1", "cwd": "/"}]}
    assert room.ok("list_sessions", cwd="/x", cursor="c")["sessions"]
    assert [m["params"] for m in room.log.messages("session/list")] == [
        {},
        {"cwd": "/x", "cursor": "c"},
    ]
    assert room.ok("delete_session", session_id="old") == {}
    (deleted,) = room.log.messages("session/delete")
    assert deleted["params"] == {"sessionId": "old"}


def test_deleting_what_is_not_there_is_no_failure(room: Room) -> None:
    room.open("delete=error:-32002:no such session")
    assert room.ok("delete_session", session_id="gone") == {}


@pytest.mark.parametrize(
    ("operation", "capability", "fields"),
    [
        ("list_sessions", "list", {}),
        ("delete_session", "delete", {"session_id": "x"}),
        ("fork", "fork", {"new_session": "branch"}),
        ("steer", "steering", {"message": "m"}),
    ],
)
def test_what_the_agent_does_not_offer_is_refused_by_name(
    room: Room, operation: str, capability: str, fields: dict[str, Any]
) -> None:
    room.open(f"without={capability}")
    words = room.refused(operation, "unsupported", **fields)
    assert capability in words
    assert room.log.methods() == ["initialize", "session/new"]


def test_a_fork_is_a_session_beside_its_source(daemon: Host, room: Room) -> None:
    room.open("session=root")
    assert room.reply("say one") == "one"
    branch = f"{room.name}-branch"
    result = room.ok("fork", new_session=branch)
    assert result["session_id"] == "root-fork"
    assert result["agent"] == {"name": "scripted", "version": "1"}
    words = room.refused("fork", "invalid_request", new_session=branch)
    assert branch in words
    ours = room.start(f"say ours\n{room.gate('fork')}")
    theirs = daemon.start(None, "say theirs", session=branch)
    assert daemon.answer(theirs)["result"]["reply"] == "theirs"
    room.go("fork")
    assert room.answer(ours)["result"]["reply"] == "ours"
    events = daemon.events("update", session=branch)
    assert [event["update"]["content"]["text"] for event in events] == ["theirs"]
    assert daemon.call("close", session=branch)["ok"] is True
    assert room.reply("say still here") == "still here"
    assert room.log.methods().count("initialize") == 1
    closed = [m["params"]["sessionId"] for m in room.log.messages("session/close")]
    assert closed == ["root-fork"]


def test_a_fork_that_the_agent_refuses_leaves_its_name_free(daemon: Host, room: Room) -> None:
    room.open("fork=error:-32603:not now")
    branch = f"{room.name}-branch"
    response = room.call("fork", new_session=branch)
    assert (response["code"], response["error"]) == ("agent_error", "not now")
    opened = daemon.call("open", session=branch, config=room.config())
    assert opened["ok"] is True, opened
    assert daemon.call("close", session=branch)["ok"] is True


def test_a_fork_the_agent_never_answers_ends_in_time(daemon: Host, room: Room) -> None:
    room.open("fork=silent", start_timeout=0.5)
    response = room.call("fork", SOON, new_session=f"{room.name}-branch")
    assert (response["ok"], response["code"]) == (False, "timeout")
    assert "session/fork" in response["error"]
    assert room.reply("say still here") == "still here"
    assert len(room.log.messages("$/cancel_request")) == 1


AUTH = 'new=raw:{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"log in first"}}'
METHODS = {
    "protocolVersion": 1,
    "agentCapabilities": {},
    "authMethods": [{"id": "key", "name": "API key"}],
}


def test_an_agent_that_wants_authentication_stays_for_it(room: Room) -> None:
    config = room.config(AUTH, "initialize=" + json.dumps(METHODS))
    response = room.call("open", config=config)
    assert (response["code"], response["agent_code"]) == ("auth_required", -32000)
    assert response["auth_methods"] == METHODS["authMethods"]
    assert response["error"] == "log in first"
    words = room.refused("authenticate", "invalid_request", method_id="magic")
    assert "magic" in words
    assert "key" in words
    assert room.ok("authenticate", method_id="key") == {}
    again = room.call("open", config=config)
    assert again["code"] == "auth_required"
    assert room.log.methods() == ["initialize", "session/new", "authenticate", "session/new"]


def test_status_tells_of_the_sessions(room: Room) -> None:
    room.open("session=s-7")
    turn = room.start(f"say up\n{room.gate('status')}")
    room.said("up")
    pid = room.log.records()[0]["pid"]
    status = room.ok("status")
    assert status["uptime"] > 0
    assert status["counters"]["sessions"] >= 1
    ours = status["sessions"][room.name]
    assert (ours["state"], ours["session_id"], ours["agent_pid"]) == ("running", "s-7", pid)
    assert (ours["turns"], ours["queued_messages"]) == (1, 0)
    room.go("status")
    room.answer(turn)
    assert room.ok("status")["sessions"][room.name]["state"] == "idle"


def test_closing_gives_the_agent_s_metadata_and_frees_the_name(room: Room) -> None:
    room.open('close_meta={"cost":5}')
    assert room.ok("close") == {"response_metadata": {"cost": 5}}
    assert room.name not in room.ok("status")["sessions"]
    room.refused("close", "invalid_request")
    assert room.open()["session_id"] == "s"
    assert room.reply("say anew") == "anew"
    assert room.events("update")[-1]["turn"] == 1


def test_closing_ends_the_running_turn_as_cancelled_and_refuses_what_comes(room: Room) -> None:
    room.open()
    first = room.start("say part\nwait cancel\nstop cancelled")
    room.said("part")
    second = room.start("say never")
    close = room.send("close")
    late = room.start("say never")
    answers = [room.answer(ident, SOON) for ident in (first, second, close, late)]
    assert [answer["ok"] for answer in answers] == [True, True, True, False]
    assert answers[0]["result"]["reply"] == "part"
    assert [a["result"]["stop_reason"] for a in answers[:2]] == ["cancelled"] * 2
    assert answers[3]["code"] == "invalid_request"
    assert "closed" in answers[3]["error"]
    assert len(room.log.prompts()) == 1


def test_closing_during_an_opening_ends_it(room: Room) -> None:
    opening = room.send("open", config=room.config("new=silent"))
    assert wait_until(lambda: room.log.messages("session/new"))
    assert room.ok("close") == {"response_metadata": {}}
    response = room.answer(opening, SOON)
    assert (response["ok"], response["code"]) == (False, "cancelled")


def test_requests_take_effect_in_the_order_they_came(daemon: Host, room: Room) -> None:
    room.open("modes=1", "with=steering")
    operations = [("set_mode", {"mode_id": str(n)}) for n in range(10)]
    packets = [
        daemon.frame({"id": f"{room.name}-{n}", "operation": name, "session": room.name, **fields})
        for n, (name, fields) in enumerate(operations)
    ]
    daemon.raw(b"".join(packets))
    for n in range(10):
        room.wait(lambda n=n: [f for f in room.frames() if f.get("id") == f"{room.name}-{n}"])
    modes = [m["params"]["modeId"] for m in room.log.messages("session/set_mode")]
    assert modes == [str(n) for n in range(10)]


def test_a_request_while_shutting_down_is_refused(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.call("open", config={"command": scripted("close=silent"), "close_grace": 2})
    shutdown = host.send("shutdown")
    late = host.start(None, "say no")
    answer = host.answer(late, SOON)
    assert (answer["ok"], answer["code"]) == (False, "cancelled")
    assert host.answer(shutdown, 10)["ok"] is True
    assert host.exit_code(SOON) == 0
    host.check()
