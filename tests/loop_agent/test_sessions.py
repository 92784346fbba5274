"""Sessions over their life: kept on disk, opened by another process, forked, closed, deleted."""

import json
import signal
from pathlib import Path

import pytest

from tests.loop_agent.acp_client import AcpClient, Message
from tests.loop_agent.chat_server import ChatServer, Gate, call, delta, text
from tests.loop_agent.conftest import Start


def opening(session: str, cwd: str = "/tmp", **more: object) -> Message:
    return {"sessionId": session, "cwd": cwd, "mcpServers": [], **more}


def talk(agent: AcpClient, chat: ChatServer) -> str:
    """A session with a thought, a tool call and a text in it."""
    session = agent.new()
    thought = delta(reasoning_content="let me see")
    chat.answers([thought, *call(("bash", '{"command":"echo x"}'))], text("it ", "said x"))
    agent.prompt(session, "run it", "please")
    return session


def test_load_shows_the_whole_history_before_it_answers(start: Start, chat: ChatServer) -> None:
    first = start("--tools", "bash")
    session = talk(first, chat)
    shown = first.updates(session)
    assert first.end() == 0
    second = start("--tools", "bash")
    result = second.call("session/load", opening(session))
    assert result["modes"]["currentModeId"] == "ask"
    replayed = second.updates(session)
    assert [update["sessionUpdate"] for update in replayed] == [
        "user_message_chunk",
        "user_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "agent_message_chunk",
    ]
    assert second.text(session) == "it said x"
    assert second.text(session, "user_message_chunk") == "run itplease"
    assert replayed[3]["status"] == "completed"
    assert replayed[3]["rawOutput"]["output"] == "x\n"
    # The same messages and calls: their ids are those the first client saw.
    for kind, key in [("agent_message_chunk", "messageId"), ("tool_call", "toolCallId")]:
        live = {update[key] for update in shown if update["sessionUpdate"] == kind}
        assert live == {update[key] for update in replayed if update["sessionUpdate"] == kind}
    # Nothing more comes once it has answered.
    count = len(second.messages)
    second.call("session/list", {})
    assert len(second.messages) == count + 1


def test_resume_shows_nothing_and_goes_on(start: Start, chat: ChatServer) -> None:
    first = start("--tools", "bash")
    session = talk(first, chat)
    before = chat.requests[-1]["messages"]
    assert first.end() == 0
    second = start("--tools", "bash")
    second.call("session/resume", opening(session))
    assert second.updates(session) == []
    chat.answers(text("more"))
    usage = second.prompt(session, "go on")["usage"]
    assert usage["totalTokens"] == 42
    after = chat.requests[-1]["messages"]
    assert after[: len(before)] == before
    assert after[len(before) :] == [
        {"role": "assistant", "content": "it said x"},
        {"role": "user", "content": "go on"},
    ]


def test_a_fork_goes_its_own_way(start: Start, chat: ChatServer) -> None:
    agent = start("--tools", "bash")
    session = talk(agent, chat)
    fork = agent.call("session/fork", opening(session))["sessionId"]
    assert fork != session
    assert agent.updates(fork) == []
    chat.answers(text("theirs"), text("ours"))
    agent.prompt(fork, "in the fork")
    agent.prompt(session, "in the source")
    theirs, ours = chat.requests[-2]["messages"], chat.requests[-1]["messages"]
    assert theirs[:-1] == ours[:-1]
    assert (theirs[-1]["content"], ours[-1]["content"]) == ("in the fork", "in the source")
    listed = {info["sessionId"] for info in agent.call("session/list", {})["sessions"]}
    assert listed == {session, fork}


def test_a_session_can_be_forked_while_its_turn_runs(start: Start, chat: ChatServer) -> None:
    agent, gate = start(), Gate()
    session = agent.new()
    chat.answers(text("part", gate))
    ident = agent.start(session, "a")
    agent.wait(lambda: agent.text(session) == "part")
    fork = agent.call("session/fork", opening(session))["sessionId"]
    chat.answers(text("forked"))
    agent.prompt(fork, "b")
    assert [message["content"] for message in chat.requests[-1]["messages"]] == ["a", "b"]
    gate.open()
    assert agent.result(ident)["stopReason"] == "end_turn"


def test_mode_and_standing_answers_are_kept(start: Start, chat: ChatServer) -> None:
    first = start("--tools", "bash,search")
    session = first.new()
    first.policy = "allow_always"
    chat.answers(call(("bash", '{"command":"echo x"}')), text("ok"))
    first.prompt(session, "go")
    other = first.new()
    first.call("session/set_mode", {"sessionId": other, "modeId": "auto"})
    assert first.end() == 0
    second = start("--tools", "bash,search")
    second.call("session/resume", opening(session))
    chat.answers(call(("bash", '{"command":"echo x"}')), text("ok"))
    second.prompt(session, "go")
    assert second.asked == []
    modes = second.call("session/resume", opening(other))["modes"]
    assert modes["currentModeId"] == "auto"


def test_list_has_the_newest_first_and_can_be_narrowed(start: Start, chat: ChatServer) -> None:
    agent = start()
    one, two = agent.new("/tmp"), agent.new("/")
    chat.answers(text("ok"))
    agent.prompt(one, "about one")
    sessions = agent.call("session/list", {})["sessions"]
    assert [info["sessionId"] for info in sessions] == [one, two]
    assert sessions[0]["title"] == "about one"
    assert sessions[0]["updatedAt"].endswith("+00:00")
    assert "title" not in sessions[1]
    narrowed = agent.call("session/list", {"cwd": "/"})["sessions"]
    assert [info["sessionId"] for info in narrowed] == [two]
    assert agent.call("session/list", {"cwd": "/nowhere"}) == {"sessions": []}
    assert agent.refusal("session/list", {"cursor": "x"})["code"] == -32602


def test_a_deleted_session_is_gone_and_can_be_deleted_again(start: Start, chat: ChatServer) -> None:
    agent, gate = start(), Gate()
    session = agent.new()
    chat.answers(text("part", gate))
    ident = agent.start(session, "a")
    agent.wait(lambda: agent.text(session) == "part")
    assert agent.call("session/delete", {"sessionId": session}) == {}
    assert agent.result(ident)["stopReason"] == "cancelled"
    assert agent.call("session/delete", {"sessionId": session}) == {}
    assert agent.call("session/list", {}) == {"sessions": []}
    assert agent.refusal("session/load", opening(session))["code"] == -32002


def test_a_closed_session_can_be_opened_again(start: Start, chat: ChatServer) -> None:
    agent = start("--tools", "bash")
    session = talk(agent, chat)
    agent.call("session/close", {"sessionId": session})
    agent.call("session/resume", opening(session))
    chat.answers(text("ok"))
    assert agent.prompt(session, "on")["stopReason"] == "end_turn"


def test_a_session_in_use_cannot_be_opened_again(start: Start, chat: ChatServer) -> None:
    agent, gate = start(), Gate()
    session = agent.new()
    chat.answers(text("part", gate))
    ident = agent.start(session, "a")
    gate.wait_reached()
    assert agent.refusal("session/load", opening(session))["code"] == -32600
    gate.open()
    agent.result(ident)


def test_what_a_killed_process_left_is_mended(
    start: Start, chat: ChatServer, tmp_path: Path
) -> None:
    first = start("--tools", "bash")
    first.policy = None
    session = first.new()
    chat.answers(call(("bash", '{"command":"echo x"}')))
    first.start(session, "go")
    first.wait(lambda: first.asked)
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    file = tmp_path / "sessions" / f"{session}.ndjson"
    with file.open("ab") as stream:
        stream.write(b'{"kind":"message","message":{"role":"user","content":"torn')
    second = start("--tools", "bash")
    second.call("session/load", opening(session))
    chat.answers(text("ok"))
    second.prompt(session, "go on")
    messages = chat.requests[-1]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "user"]
    assert "interrupted" in messages[2]["content"]
    for line in file.read_bytes().splitlines():
        json.loads(line)


def test_a_file_that_is_no_session_is_an_error_that_names_it(start: Start, tmp_path: Path) -> None:
    agent = start()
    for name, content in [("bad", b"hello\n"), ("empty", b""), ("new", b'{"kind":"x"}\n')]:
        (tmp_path / "sessions" / f"{name}.ndjson").write_bytes(content)
        error = agent.refusal("session/load", opening(name))
        assert error["code"] == -32603
        assert f"{name}.ndjson" in error["data"]["details"]
    assert agent.call("session/list", {}) == {"sessions": []}


@pytest.mark.parametrize(
    ("mode", "expected"), [("append", "be brief\n\none\n\ntwo"), ("override", "one\n\ntwo")]
)
def test_the_system_prompt_is_the_system_message(
    start: Start, chat: ChatServer, mode: str, expected: str
) -> None:
    agent = start("--system-prompt", "be brief")
    content = [{"type": "text", "text": word} for word in ("one", "two")]
    given = {"systemPrompt": {"mode": mode, "content": content}}
    new = {"cwd": "/tmp", "mcpServers": [], **given}
    session = agent.call("session/new", new)["sessionId"]
    plain = agent.new()
    chat.answers(text("ok"), text("ok"), text("ok"))
    agent.prompt(session, "hi")
    assert chat.requests[-1]["messages"][0] == {"role": "system", "content": expected}
    agent.prompt(plain, "hi")
    assert chat.requests[-1]["messages"][0] == {"role": "system", "content": "be brief"}
    agent.call("session/close", {"sessionId": session})
    agent.call("session/resume", opening(session))
    agent.prompt(session, "hi")
    assert chat.requests[-1]["messages"][0]["content"] == expected


def test_a_system_prompt_that_cannot_be_applied_is_refused(start: Start) -> None:
    agent = start()
    for given in (
        {"mode": "prepend", "content": [{"type": "text", "text": "x"}]},
        {"mode": "append", "content": []},
        {"mode": "append", "content": [{"type": "image", "data": "", "mimeType": "image/png"}]},
        {"mode": "append"},
    ):
        params = {"cwd": "/tmp", "mcpServers": [], "systemPrompt": given}
        assert agent.refusal("session/new", params)["code"] == -32602
    assert agent.call("session/list", {}) == {"sessions": []}


def test_a_session_moves_to_the_cwd_it_is_opened_with(
    start: Start, chat: ChatServer, tmp_path: Path
) -> None:
    agent = start("--tools", "bash", "--permission", "auto")
    session = agent.new("/tmp")
    agent.call("session/load", opening(session, str(tmp_path)))
    chat.answers(call(("bash", '{"command":"pwd"}')), text("ok"))
    agent.prompt(session, "where")
    assert chat.requests[-1]["messages"][-1]["content"] == f"{tmp_path}\n"
    assert agent.call("session/list", {"cwd": str(tmp_path)})["sessions"][0]["cwd"] == str(tmp_path)


def test_a_full_disk_is_an_error_and_not_the_end(start: Start, tmp_path: Path) -> None:
    agent = start()
    session = agent.new()
    file = tmp_path / "sessions" / f"{session}.ndjson"
    file.unlink()
    file.mkdir()
    params = {"sessionId": session, "prompt": [{"type": "text", "text": "a"}]}
    error = agent.refusal("session/prompt", params)
    assert error["code"] == -32603
    assert "saved" in error["message"]
    file.rmdir()
    assert agent.call("session/list", {}) == {"sessions": []}
