"""The protocol itself: versions, capabilities, methods, malformed input, order."""

import json

import pytest

from tests.loop_agent.acp_client import AcpClient
from tests.loop_agent.chat_server import ChatServer, Gate, text
from tests.loop_agent.conftest import Start


@pytest.mark.parametrize("asked", [1, 0, 2, 65535])
def test_version_1_is_answered_whatever_is_asked(agent: AcpClient, asked: int) -> None:
    result = agent.call("initialize", {"protocolVersion": asked})
    assert result["protocolVersion"] == 1
    assert result["agentInfo"]["name"] == "acp-mcp-bridge"
    assert result["authMethods"] == []
    assert result["_meta"]["steering"] == {"supported": True}


def test_every_advertised_method_is_there_and_no_other(agent: AcpClient) -> None:
    capabilities = agent.initialize()["agentCapabilities"]
    assert capabilities["loadSession"] is True
    assert set(capabilities["sessionCapabilities"]) == {
        *("list", "resume", "fork", "close", "delete", "systemPrompt")
    }
    for name in ("new", "load", "resume", "fork", "list", "close", "delete", "prompt"):
        agent_answer = agent.request(f"session/{name}", 5)
        with pytest.raises(AssertionError, match="-32602"):
            agent.result(agent_answer)
    for name in ("authenticate", "logout", "session/set_config_option", "_vendor/thing", "x"):
        assert agent.refusal(name, {})["code"] == -32601


def test_a_version_that_is_no_number_is_refused(agent: AcpClient) -> None:
    error = agent.refusal("initialize", {"protocolVersion": "2024-11-05"})
    assert error["code"] == -32602
    assert "protocolVersion" in error["message"]


def test_nothing_goes_before_initialize(start: Start) -> None:
    agent = start(initialize=False)
    assert agent.refusal("session/list", {})["code"] == -32600
    agent.initialize()
    assert agent.call("session/list", {}) == {"sessions": []}


def test_an_id_comes_back_in_its_own_type(agent: AcpClient) -> None:
    for ident in ("a string", 7_000_000, "17"):
        agent.result(agent.request("session/list", {}, ident))


def test_an_id_in_use_is_refused_and_its_request_is_not_disturbed(
    start: Start, chat: ChatServer
) -> None:
    agent, gate = start(), Gate()
    session, other = agent.new(), agent.new()
    chat.answers(text("a", gate, "b"), text("c"))
    ident = agent.start(session, "one")
    gate.wait_reached()
    block = [{"type": "text", "text": "two"}]
    params = {"sessionId": other, "prompt": block}
    agent.send({"jsonrpc": "2.0", "id": ident, "method": "session/prompt", "params": params})
    refusal = agent.wait(lambda: agent._answered.pop(ident, None))
    assert refusal["error"]["code"] == -32600
    # The other session has no turn for it.
    assert agent.prompt(other, "three")["stopReason"] == "end_turn"
    gate.open()
    assert agent.result(ident)["stopReason"] == "end_turn"


def test_what_is_no_message_is_refused_and_the_agent_lives(start: Start) -> None:
    agent = start()
    before = len(agent.messages)
    agent.write(b'{"broken\n[]\n42\n{"foo":1}\n\n  \n"s"\n\xff\xfe\n')
    agent.write(b'{"jsonrpc":"2.0","id":99,"result":{}}\n')
    agent.call("session/list", {})
    codes = [message["error"]["code"] for message in agent.messages[before:-1]]
    assert codes == [-32700, -32600, -32600, -32600, -32600, -32700]
    assert all(message["id"] is None for message in agent.messages[before:-1])


def test_notifications_are_never_answered(agent: AcpClient) -> None:
    before = len(agent.messages)
    agent.notify("session/cancel", {"sessionId": "unknown"})
    agent.notify("session/cancel", {"session": 1})
    agent.notify("_vendor/thing", {})
    agent.notify("$/cancel_request", {"requestId": 12345})
    agent.call("session/list", {})
    assert len(agent.messages) == before + 1


def test_line_separators_of_unicode_and_lone_surrogates_go_through(
    agent: AcpClient, chat: ChatServer
) -> None:
    session = agent.new()
    chat.answers(text("a\u2028b\u2029c\x85d\ud83de"))
    agent.prompt(session, "x\u2028y\ud83dz")
    assert agent.text(session) == "a\u2028b\u2029c\x85d\ud83de"
    assert chat.requests[0]["messages"][-1]["content"] == "x\u2028y\ud83dz"


def test_a_crlf_a_bom_and_a_last_line_without_end_are_accepted(start: Start) -> None:
    agent = start()
    agent._methods["b"] = agent._methods["c"] = "session/list"
    request = {"jsonrpc": "2.0", "method": "session/list", "params": {}}
    agent.write(b"\xef\xbb\xbf" + json.dumps(request | {"id": "b"}).encode() + b"\r\n")
    agent.result("b")
    agent.write(json.dumps(request | {"id": "c"}).encode())
    assert agent.process.stdin is not None
    agent.process.stdin.close()
    assert agent.process.wait(30) == 0
    agent.check_clean()
    assert "c" in agent._answered


def test_a_cwd_that_is_not_absolute_is_refused(agent: AcpClient) -> None:
    for method in ("session/new", "session/load", "session/resume", "session/fork"):
        params = {"cwd": "some/where", "mcpServers": [], "sessionId": "x"}
        error = agent.refusal(method, params)
        assert error["code"] == -32602
        assert "some/where" in error["message"]


def test_an_unknown_session_is_named_in_the_error(agent: AcpClient) -> None:
    for method in ("session/load", "session/resume", "session/fork", "session/prompt"):
        params = {"cwd": "/tmp", "mcpServers": [], "sessionId": "../nope", "prompt": []}
        error = agent.refusal(method, params)
        assert (error["code"], error["data"]) == (-32002, {"sessionId": "../nope"})
    for method in ("session/close", "session/delete"):
        assert agent.call(method, {"sessionId": "../nope"}) == {}


def test_a_second_prompt_is_refused_while_one_runs(agent: AcpClient, chat: ChatServer) -> None:
    session, gate = agent.new(), Gate()
    chat.answers(text("a", gate, "b"))
    first = agent.start(session, "one")
    second = agent.start(session, "two")
    with pytest.raises(AssertionError, match="-32600"):
        agent.result(second)
    gate.open()
    assert agent.result(first)["stopReason"] == "end_turn"
    assert agent.text(session) == "ab"


def test_sessions_run_beside_each_other(agent: AcpClient, chat: ChatServer) -> None:
    one, two, gate = agent.new(), agent.new(), Gate()
    chat.answers(text("a", gate, "b"), text("c"))
    first = agent.start(one, "one")
    gate.wait_reached()
    assert agent.prompt(two, "two")["stopReason"] == "end_turn"
    gate.open()
    agent.result(first)
    assert (agent.text(one), agent.text(two)) == ("ab", "c")


def test_cancelling_a_request_by_its_id_ends_the_turn(agent: AcpClient, chat: ChatServer) -> None:
    session, gate = agent.new(), Gate()
    chat.answers(text("part", gate), text("after"))
    ident = agent.start(session, "go")
    agent.wait(lambda: agent.text(session) == "part")
    agent.notify("$/cancel_request", {"requestId": ident})
    with pytest.raises(AssertionError, match="-32800"):
        agent.result(ident)
    chat.wait(lambda: chat.left == 1)
    assert agent.prompt(session, "again")["stopReason"] == "end_turn"
    history = chat.requests[1]["messages"]
    assert [message["role"] for message in history] == ["user", "assistant", "user"]
    assert history[1]["content"] == "part"


def test_modes_are_told_where_they_matter(agent: AcpClient, start: Start) -> None:
    new = {"cwd": "/tmp", "mcpServers": []}
    modes = agent.call("session/new", new)["modes"]
    assert modes["currentModeId"] == "ask"
    assert [mode["id"] for mode in modes["availableModes"]] == ["ask", "auto"]
    bare = start()
    result = bare.call("session/new", new)
    assert set(result) == {"sessionId"}
    params = {"sessionId": result["sessionId"], "modeId": "auto"}
    assert bare.refusal("session/set_mode", params)["code"] == -32602


def test_an_unknown_mode_is_refused(agent: AcpClient) -> None:
    error = agent.refusal("session/set_mode", {"sessionId": agent.new(), "modeId": "yolo"})
    assert error["code"] == -32602
    assert "ask, auto" in error["message"]


def test_meta_is_accepted_everywhere(agent: AcpClient, chat: ChatServer) -> None:
    meta = {"_meta": {"traceparent": "00-1-2-01", "x/y": [None]}}
    session = agent.call("session/new", {"cwd": "/tmp", "mcpServers": [], **meta})["sessionId"]
    chat.answers(text("ok"))
    block = {"type": "text", "text": "hi", **meta}
    result = agent.call("session/prompt", {"sessionId": session, "prompt": [block], **meta})
    assert result["stopReason"] == "end_turn"
