"""The demo as a stranger runs it."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.peers.processes import MARKER, survivors

SHOWN = (
    "five.",
    "un, deux, trois, quatre, cinq.",
    "(injected)",
    "its client has hung up",
    "notes.read_note, attempt 1: HTTP 503",
    "notes.read_note, attempt 2: answer",
    "may I run 'echo $((6 * 7))'?",
    "The shell says 42",
    "answers: deny",
    "All of it happened: 25 checks held",
)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_it_shows_the_whole_main_job_and_leaves_a_trace_and_nothing_else(
    loop: str, tmp_path: Path
) -> None:
    trace, marker = tmp_path / "demo.trace", uuid.uuid4().hex
    done = subprocess.run(
        [sys.executable, "-m", "bridge", "demo", "--loop", loop, "--record", str(trace)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, MARKER: marker},
    )
    assert (done.returncode, done.stderr) == (0, "")
    page = tmp_path / "demo.html"
    for shown in (*SHOWN, str(trace), str(page)):
        assert shown in done.stdout, done.stdout
    assert "\x1b" not in done.stdout
    assert b"session/prompt" in trace.read_bytes()
    assert b"deep thought" in page.read_bytes()
    assert survivors(marker, 5) == []
