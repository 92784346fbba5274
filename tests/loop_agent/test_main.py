"""The process: how it begins, how it ends, what is on its stdout."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.loop_agent.chat_server import ChatServer, Gate, Step, call, delta, text
from tests.loop_agent.conftest import Start
from tests.peers.processes import survivors, wait_until


def test_nothing_heavy_is_imported_before_the_first_prompt() -> None:
    program = """
import sys
import bridge.cli.agent, bridge.loop_agent.main
heavy = {"httpx2", "mcp", "pydantic", "trio", "structlog", "rich", "httptools", "jsonschema"}
print(sorted(heavy & set(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert run.stdout == b"[]\n"


def test_the_end_of_input_is_a_clean_end(start: Start) -> None:
    agent = start()
    agent.new()
    assert agent.end() == 0
    assert agent.messages[-1]["id"] == 2


def test_at_the_end_of_input_the_turn_is_answered_and_its_tools_are_gone(
    start: Start, chat: ChatServer, tmp_path: Path
) -> None:
    agent = start("--tools", "bash", "--permission", "auto")
    session = agent.new(tmp_path)
    chat.answers(call(("bash", '{"command":"sleep 600 & touch here; sleep 600"}')))
    ident = agent.start(session, "go")
    assert wait_until((tmp_path / "here").exists)
    assert agent.end() == 0
    assert agent.result(ident)["stopReason"] == "cancelled"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_with_all_it_started(
    start: Start, chat: ChatServer, tmp_path: Path, number: signal.Signals
) -> None:
    agent = start("--tools", "bash", "--permission", "auto")
    session = agent.new(tmp_path)
    chat.answers(call(("bash", '{"command":"trap : TERM; touch here; sleep 600; sleep 600"}')))
    ident = agent.start(session, "go")
    assert wait_until((tmp_path / "here").exists)
    agent.process.send_signal(number)
    assert agent.process.wait(30) == 128 + number
    assert agent.result(ident)["stopReason"] == "cancelled"
    agent.check_clean()


def test_killed_it_leaves_nothing_running(start: Start, chat: ChatServer, tmp_path: Path) -> None:
    agent = start("--tools", "bash", "--permission", "auto")
    session = agent.new(tmp_path)
    chat.answers(call(("bash", '{"command":"setsid sleep 600 & touch here; sleep 600"}')))
    agent.start(session, "go")
    assert wait_until((tmp_path / "here").exists)
    agent.process.kill()
    agent.process.wait()
    assert survivors(agent.marker, 5) == []


def test_a_client_that_closes_its_end_ends_the_agent(start: Start, chat: ChatServer) -> None:
    agent, gate = start(), Gate()
    session = agent.new()
    chat.answers(text("part", gate))
    agent.start(session, "go")
    gate.wait_reached()
    assert agent.process.stdout is not None
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, agent.process.stdout.fileno())
    os.close(null)
    gate.open()
    assert agent.process.wait(30) == 0


def test_a_client_that_reads_nothing_more_cannot_keep_it_from_ending(
    start: Start, chat: ChatServer
) -> None:
    agent, begun, gate = start(), Gate(), Gate()
    session = agent.new()
    agent.reading.clear()
    flood: list[Step] = [begun, delta(content="x" * 1000) * 5000, gate]
    chat.answers(flood)
    agent.start(session, "go")
    begun.wait_reached()
    begun.open()
    assert agent.process.stdin is not None
    agent.process.stdin.close()
    assert agent.process.wait(30) == 0
    assert not gate.reached.is_set()


def test_the_command_works_under_any_locale(start: Start, chat: ChatServer) -> None:
    agent = start(environment={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252"})
    session = agent.new()
    chat.answers(text("Độ é 北 🎉"))
    agent.prompt(session, "北 🎉")
    assert agent.text(session) == "Độ é 北 🎉"
    assert chat.requests[0]["messages"][0]["content"] == "北 🎉"
