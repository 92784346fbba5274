"""The demo as a stranger runs it."""

import subprocess
import sys

import pytest

from bridge.cli.demo import first


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_the_demo_shows_the_whole_main_job(loop: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bridge", "demo", "--loop", loop],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for shown in (
        "turn 1 ended: end_turn",
        "-> injected",
        "turn 3 ended: cancelled",
        "notes.read_note attempt 1: HTTP 503",
        "notes.read_note attempt 2: answer",
        "may I run: echo",
        "the tool said: 42",
        "All of it happened",
    ):
        assert shown in done.stdout


def test_a_recorded_demo_leaves_a_trace(tmp_path) -> None:
    trace = tmp_path / "demo.trace"
    command = [sys.executable, "-m", "bridge", "demo", "--record", str(trace)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0
    assert str(trace) in done.stdout
    assert b"session/prompt" in trace.read_bytes()


def test_the_first_failure_is_found_in_nested_groups() -> None:
    failure = ValueError("the one")
    group = ExceptionGroup("outer", [ExceptionGroup("inner", [failure, TypeError()])])
    assert first(group) is failure
