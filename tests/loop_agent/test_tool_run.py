"""Tool calls as client and model see them: states, permissions, what models get wrong."""

from pathlib import Path

import pytest

from tests.loop_agent.acp_client import AcpClient, Message
from tests.loop_agent.chat_server import ChatServer, call, text
from tests.loop_agent.conftest import Start
from tests.peers.processes import alive, wait_until


def results(chat: ChatServer, request: int = -1) -> list[str]:
    """What the model was told of its calls."""
    messages = chat.requests[request]["messages"]
    return [message["content"] for message in messages if message["role"] == "tool"]


def states(agent: AcpClient, session: str) -> list[str]:
    kinds = ("tool_call", "tool_call_update")
    updates = [u for u in agent.updates(session) if u["sessionUpdate"] in kinds]
    return [update["status"] for update in updates]


def run(agent: AcpClient, chat: ChatServer, *calls: tuple[str, str]) -> str:
    """A turn with these calls; gives its session."""
    session = agent.new()
    chat.answers(call(*calls), text("ok"))
    assert agent.prompt(session, "go")["stopReason"] == "end_turn"
    return session


def test_a_call_is_shown_asked_about_run_and_answered(agent: AcpClient, chat: ChatServer) -> None:
    session = run(agent, chat, ("bash", '{"command":"echo hello"}'))
    assert states(agent, session) == ["pending", "in_progress", "completed"]
    first = agent.updates(session, "tool_call")[0]
    assert first["toolCallId"] == "call_0"
    assert (first["title"], first["kind"], first["name"]) == ("echo hello", "execute", "bash")
    assert first["rawInput"] == {"command": "echo hello"}
    asked = agent.asked[0]["params"]
    assert asked["sessionId"] == session
    assert asked["toolCall"]["toolCallId"] == "call_0"
    kinds = [option["kind"] for option in asked["options"]]
    assert kinds == ["allow_once", "allow_always", "reject_once", "reject_always"]
    last = agent.updates(session, "tool_call_update")[-1]
    assert last["content"] == [{"type": "content", "content": {"type": "text", "text": "hello\n"}}]
    assert last["rawOutput"]["exitCode"] == 0
    assert results(chat) == ["hello\n"]
    history = chat.requests[1]["messages"][1]
    assert history["content"] == ""
    assert history["tool_calls"][0]["function"] == {
        "name": "bash",
        "arguments": '{"command":"echo hello"}',
    }


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("bash", '{"command":', ["not valid JSON", "Resend"]),
        ("bash", "[1,2]", ["an array", "Resend"]),
        ("bash", "null", ["null", "Resend"]),
        ("bash", '"echo"', ["a string", "Resend"]),
        ("bash", "", ["'command'", "Resend"]),
        ("bash", '{"command":5}', ["'command'"]),
        ("bash", '{"command":"x","timeout":-1}', ["'timeout'"]),
        ("bash", '{"command":" "}', ["empty"]),
        ("edit", '{"path":"x"}', ["'old_string'"]),
        ("search", '{"pattern":"("}', ["no regular expression"]),
        ("rm_rf", "{}", ["no tool named 'rm_rf'", "bash, edit, search"]),
        ("", "{}", ["no tool named ''"]),
    ],
)
def test_what_a_model_gets_wrong_is_told_to_it(
    agent: AcpClient, chat: ChatServer, name: str, arguments: str, words: list[str]
) -> None:
    session = run(agent, chat, (name, arguments))
    for word in words:
        assert word in results(chat)[0]
    assert states(agent, session) == ["pending", "failed"]
    assert agent.asked == []
    assert agent.text(session) == "ok"


def test_several_calls_run_in_the_order_of_the_model(
    agent: AcpClient, chat: ChatServer, tmp_path: Path
) -> None:
    calls = [("bash", f'{{"command":"echo {n} >> {tmp_path}/order; echo {n}"}}') for n in "abc"]
    session = run(agent, chat, calls[0], ("nope", "{"), calls[1], calls[2])
    assert (tmp_path / "order").read_text() == "a\nb\nc\n"
    told = results(chat)
    assert [told[0], *told[2:]] == ["a\n", "b\n", "c\n"]
    assert len(agent.updates(session, "tool_call")) == 4


def test_ids_that_a_model_uses_again_are_told_apart(agent: AcpClient, chat: ChatServer) -> None:
    session = agent.new()
    again = ("bash", '{"command":"echo x"}')
    chat.answers(call(again), call(again), text("ok"))
    agent.prompt(session, "go")
    ids = [update["toolCallId"] for update in agent.updates(session, "tool_call")]
    assert ids == ["call_0", "call_0-2"]
    assert results(chat) == ["x\n", "x\n"]


def test_a_rejected_call_is_not_run_and_the_model_is_told(
    agent: AcpClient, chat: ChatServer, tmp_path: Path
) -> None:
    agent.policy = "reject_once"
    session = run(agent, chat, ("bash", f'{{"command":"touch {tmp_path}/x"}}'))
    assert states(agent, session) == ["pending", "failed"]
    assert "did not allow" in results(chat)[0]
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("answer", "runs"), [("allow_always", ["x\n", "x\n"]), ("reject_always", None)]
)
def test_always_is_remembered_for_the_tool_and_the_session(
    agent: AcpClient, chat: ChatServer, answer: str, runs: list[str] | None
) -> None:
    agent.policy = answer
    session = agent.new()
    again = ("bash", '{"command":"echo x"}')
    chat.answers(call(again), call(again), call(("search", '{"pattern":"q"}')), text("ok"))
    agent.prompt(session, "go")
    assert [asked["params"]["toolCall"]["name"] for asked in agent.asked] == ["bash", "search"]
    assert runs is None or results(chat)[:2] == runs
    run(agent, chat, again)
    assert len(agent.asked) == 3


def test_in_auto_mode_nothing_is_asked(agent: AcpClient, chat: ChatServer) -> None:
    session = agent.new()
    agent.call("session/set_mode", {"sessionId": session, "modeId": "auto"})
    chat.answers(call(("bash", '{"command":"echo x"}')), text("ok"))
    agent.prompt(session, "go")
    assert agent.asked == []
    assert results(chat) == ["x\n"]


def test_a_cancelled_permission_ends_the_turn_as_cancelled(
    agent: AcpClient, chat: ChatServer
) -> None:
    agent.policy = "cancelled"
    session = agent.new()
    chat.answers(call(("bash", '{"command":"echo x"}'), ("bash", '{"command":"echo y"}')))
    assert agent.prompt(session, "go")["stopReason"] == "cancelled"
    assert states(agent, session) == ["pending", "failed"]
    chat.answers(text("ok"))
    agent.prompt(session, "on")
    assert ["interrupted" in told for told in results(chat)] == [True, True]


def test_cancelling_takes_an_open_permission_request_back(
    agent: AcpClient, chat: ChatServer
) -> None:
    agent.policy = None
    session = agent.new()
    chat.answers(call(("bash", '{"command":"echo x"}')))
    ident = agent.start(session, "go")
    asked = agent.wait(lambda: agent.asked)[0]
    agent.notify("session/cancel", {"sessionId": session})
    assert agent.result(ident)["stopReason"] == "cancelled"
    taken_back = [m["params"] for m in agent.messages if m.get("method") == "$/cancel_request"]
    assert taken_back == [{"requestId": asked["id"]}]
    # The late answer is of no consequence.
    agent.answer(asked, "allow_once")
    assert states(agent, session) == ["pending", "failed"]
    chat.answers(text("ok"))
    assert agent.prompt(session, "on")["stopReason"] == "end_turn"


def answer_with(agent: AcpClient, reply: Message, session: str) -> str:
    ident = agent.start(session, "go")
    asked = agent.wait(lambda: agent.asked)[0]
    agent.send({"jsonrpc": "2.0", "id": asked["id"], **reply})
    agent.asked.clear()
    return agent.result(ident)["stopReason"]


@pytest.mark.parametrize(
    "reply",
    [
        {"error": {"code": -32601, "message": "not here"}},
        {"error": {"code": -32800, "message": "cancelled"}},
        {"result": {"outcome": {"outcome": "selected", "optionId": "made up"}}},
        {"result": {"outcome": {"outcome": "approved"}}},
        {"result": {"outcome": "allow_once"}},
        {"result": None},
    ],
)
def test_only_an_offered_option_allows(agent: AcpClient, chat: ChatServer, reply: Message) -> None:
    agent.policy = None
    session = agent.new()
    chat.answers(call(("bash", '{"command":"echo x"}')), text("ok"))
    assert answer_with(agent, reply, session) == "end_turn"
    assert "did not allow" in results(chat)[0]


def test_cancelling_ends_a_running_command_with_all_it_started(
    agent: AcpClient, chat: ChatServer, tmp_path: Path
) -> None:
    session = agent.new()
    command = f"sleep 600 & echo $! > {tmp_path}/pid; sync; wait"
    chat.answers(call(("bash", f'{{"command":"{command}"}}')))
    ident = agent.start(session, "go")
    assert wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    pid = int((tmp_path / "pid").read_text())
    agent.notify("session/cancel", {"sessionId": session})
    assert agent.result(ident)["stopReason"] == "cancelled"
    assert not alive(pid)
    assert states(agent, session) == ["pending", "in_progress", "failed"]
    chat.answers(text("ok"))
    agent.prompt(session, "on")
    assert "interrupted" in results(chat)[0]


def test_an_edit_is_shown_as_a_diff_before_it_is_made(
    agent: AcpClient, chat: ChatServer, tmp_path: Path
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\n")
    session = agent.new(tmp_path)
    arguments = '{"path":"a.txt","old_string":"two","new_string":"2"}'
    chat.answers(call(("edit", arguments)), text("ok"))
    agent.prompt(session, "go")
    diff = {"type": "diff", "path": str(file), "oldText": "one\ntwo\n", "newText": "one\n2\n"}
    asked = agent.asked[0]["params"]["toolCall"]
    assert asked["content"] == [diff]
    assert asked["locations"] == [{"path": str(file), "line": 2}]
    assert agent.updates(session, "tool_call_update")[-1]["content"] == [diff]
    assert file.read_text() == "one\n2\n"


def test_an_agent_without_local_tools_offers_none(start: Start, chat: ChatServer) -> None:
    agent = start()
    session = agent.new()
    chat.answers(text("ok"))
    agent.prompt(session, "go")
    assert "tools" not in chat.requests[0]


def test_the_key_is_not_in_the_environment_of_commands(agent: AcpClient, chat: ChatServer) -> None:
    session = agent.new()
    chat.answers(call(("bash", '{"command":"env"}')), text("ok"))
    agent.prompt(session, "go")
    told = results(chat)[0]
    assert "OPENAI_MODEL=scripted" in told
    assert "sk-CANARY" not in told


def test_what_a_tool_did_not_foresee_is_a_result_and_the_turn_goes_on(
    agent: AcpClient, chat: ChatServer
) -> None:
    path = '{"path":"a\\u0000b","old_string":"","new_string":"x"}'
    half = '{"path":"half \\ud83d","old_string":"","new_string":"x"}'
    run(agent, chat, ("edit", path), ("edit", half), ("bash", '{"command":"echo \\ud83d"}'))
    first, second, third = results(chat)
    assert "holds a NUL" in first
    assert "half of a character" in second
    assert "half of a character" in third
