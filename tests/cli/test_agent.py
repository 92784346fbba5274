"""The agent's command line: what is refused, and what is assumed."""

import subprocess
import sys
from pathlib import Path

import pytest

from bridge.cli.agent import default_directory

COMMAND = [str(Path(sys.executable).with_name("acp-mcp-bridge")), "agent"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tools", "bash,rm"], "no tool 'rm'; there are bash, edit, search"),
        (["--max-model-requests", "0"], "--max-model-requests must be at least 1"),
        (["--context-window", "-5"], "--context-window must be at least 1"),
        (["--sessions", "/dev/null/x"], "cannot keep sessions in /dev/null/x"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(arguments: list[str], words: str) -> None:
    run = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stdout == ""
    assert words in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_help_names_every_option() -> None:
    run = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, check=True)
    for option in ("--tools", "--permission", "--sessions", "--system-prompt", "--loop"):
        assert option in run.stdout


def test_sessions_are_kept_in_the_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert default_directory() == Path("/state/acp-mcp-bridge/sessions")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/x")
    assert default_directory() == Path("/home/x/.local/state/acp-mcp-bridge/sessions")
