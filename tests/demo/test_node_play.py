"""The demo with a node agent, as a stranger runs it."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.peers.node_agents import NODE, node_bin
from tests.peers.processes import MARKER, survivors

SHOWN = (
    "is ready: pi-acp",
    "These words came through a bridge.",
    "notes.read_note, attempt 1: HTTP 503",
    "notes.read_note, attempt 2: answer",
    "the tool said: deep thought: the answer is 42",
    "its client has hung up",
    "All of it happened: 11 checks held",
)


def demo(agent: str, directory: Path, *paths: str) -> subprocess.CompletedProcess[str]:
    marker = uuid.uuid4().hex
    home = {"HOME": str(directory), "XDG_DATA_HOME": str(directory), "XDG_CONFIG_HOME": ""}
    done = subprocess.run(
        [sys.executable, "-m", "bridge", "demo", "--agent", agent, "--record", "demo.trace"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=directory,
        env={**os.environ, **home, "PATH": ":".join([*paths, os.environ["PATH"]]), MARKER: marker},
    )
    assert survivors(marker, 5) == []
    return done


@pytest.mark.peers
def test_pi_shows_a_reply_a_retried_tool_call_and_a_cancel(tmp_path: Path) -> None:
    done = demo("pi", tmp_path, node_bin(), str(NODE / ".bin"))
    assert done.returncode == 0, done.stdout + done.stderr
    for shown in SHOWN:
        assert shown in done.stdout, done.stdout
    assert b"deep thought" in (tmp_path / "demo.html").read_bytes()


def test_an_agent_that_is_not_installed_ends_it_with_the_command_that_mends_it(
    tmp_path: Path,
) -> None:
    done = demo("openclaw", tmp_path)
    assert done.returncode == 1
    assert "acp-mcp-bridge agents install openclaw" in done.stderr
    assert "Traceback" not in done.stderr
