"""`probe` on the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers.agent import scripted

BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [BRIDGE, "probe", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_report_has_both_versions() -> None:
    ended = run("--", *scripted())
    assert ended.returncode == 0, ended.stderr
    assert "asked for version 1" in ended.stdout
    assert "asked for version 2" in ended.stdout
    assert "scripted 1" in ended.stdout
    assert "sessionCapabilities.fork" in ended.stdout


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_json_has_everything(loop: str) -> None:
    ended = run("--json", "--loop", loop, "--versions", "1", "--", *scripted("modes=1"))
    [item] = json.loads(ended.stdout)
    [probed] = item["versions"]
    assert item["command"] == scripted("modes=1")
    assert probed["version"] == 1
    assert probed["modes"] == ["code (current)", "ask"]


def test_several_commands_make_a_table_and_a_failure_the_exit_code() -> None:
    ended = run("--", *scripted(), "--and", "sh", "-c", "exit 3")
    assert ended.returncode == 1
    lines = ended.stdout.splitlines()
    assert lines[0].split()[:3] == ["agent", "asked", "answered"]
    assert len(lines) == 5
    assert lines[1].startswith("scripted 1")
    assert "closed its stdout" in lines[3]


ODD = """
import json, sys
for line in sys.stdin:
    info = {"name": "a\\nb\\x1b[2J\\ud83d", "version": 1}
    result = {"protocolVersion": 1, "agentInfo": info, "sessionId": "s"}
    answer = {"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": result}
    print(json.dumps(answer), flush=True)
"""


def test_what_an_agent_calls_itself_does_not_reach_the_terminal_as_it_is() -> None:
    agent = [sys.executable, "-c", ODD]
    for command in (agent, [*agent, "--and", *agent]):
        ended = run("--versions", "1", "--", *command)
        assert ended.returncode == 0, ended.stderr
        assert "a⏎b\\x1b[2J\\ud83d 1" in ended.stdout
        assert "\x1b" not in ended.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--", "cat", "--and"],
        ["--versions", "one", "--", "cat"],
        ["--versions", "-1", "--", "cat"],
        ["--versions", "1,65536", "--", "cat"],
        ["--timeout", "0", "--", "cat"],
        ["--timeout", "nan", "--", "cat"],
    ],
)
def test_what_makes_no_sense_is_a_usage_error(arguments: list[str]) -> None:
    ended = run(*arguments)
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1
