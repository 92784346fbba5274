"""The daemon's own descriptors: nothing but packets on its stdout, whatever a library prints."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.io.stdio import Stderr

CLAIM = r"""
import os, subprocess, sys, warnings
import anyio
from bridge.io import stdio

async def main():
    reader, writer = stdio.claim()
    print("printed \xe9\ud83d")
    sys.stdout.write("no line end")
    os.write(1, b"to the descriptor\n")
    warnings.warn("warned")
    subprocess.run(["sh", "-c", "echo from a child; cat; echo its stdin is empty"])
    writer.post(b"the packet")
    data = await reader.receive()
    writer.post(b"|" + data)
    writer.close()

anyio.run(main, backend={backend!r})
"""


def run(program: str, **streams: Any) -> "subprocess.CompletedProcess[bytes]":
    options: dict[str, Any] = {"input": b"the host's", "capture_output": True} | streams
    done = subprocess.run([sys.executable, "-c", program], timeout=30, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_only_what_is_posted_reaches_stdout(backend: str) -> None:
    done = run(CLAIM.format(backend=backend))
    assert done.stdout == b"the packet|the host's"
    said = done.stderr.decode()
    for words in ("printed é\\ud83d", "no line end", "to the descriptor", "warned"):
        assert words in said
    assert "from a child\nits stdin is empty" in said


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_printing_never_fails_for_the_locale(locale: str) -> None:
    environment = os.environ | {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252"}
    done = run(CLAIM.format(backend="asyncio"), env=environment)
    assert "printed é\\ud83d".encode() in done.stderr


@pytest.mark.parametrize("target", ["/dev/null", "/dev/full", "file"])
def test_a_stdout_of_any_kind_can_be_claimed(tmp_path: Path, target: str) -> None:
    path = tmp_path / "out" if target == "file" else Path(target)
    with path.open("wb") as stdout:
        done = run(
            CLAIM.format(backend="asyncio"),
            capture_output=False,
            stdout=stdout,
            stderr=subprocess.PIPE,
        )
    assert b"printed" in done.stderr
    if target == "file":
        assert path.read_bytes() == b"the packet|the host's"


def test_a_closed_stderr_takes_the_prints_along() -> None:
    filled = "import os; os.close(2); os.open(os.devnull, os.O_RDWR)\n"
    assert run(filled + CLAIM.format(backend="asyncio")).stdout == b"the packet|the host's"


INHERITED = r"""
import os, subprocess
from bridge.io import stdio

pipes = [os.readlink(f"/proc/self/fd/{fd}") for fd in (0, 1)]
claimed = stdio.claim()
command = ["ls", "-l", "/proc/self/fd"]
listing = subprocess.run(command, capture_output=True, close_fds=False, text=True).stdout
print([pipe in listing for pipe in pipes])
os._exit(0)
"""


def test_no_child_inherits_the_host_s_pipes_and_a_print_needs_no_orderly_end() -> None:
    assert run(INHERITED).stderr == b"[False, False]\n"


@pytest.mark.anyio
async def test_a_stderr_nobody_reads_loses_its_middle_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr("bridge.io.stdio.reopen", lambda fd, flags: writing)
    stderr = Stderr(backlog=100_000)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stderr.writer.run)
        for _ in range(400):
            stderr.write(b"x" * 999 + b"\n")
        kept = stderr.writer.queued
        assert kept < 110_000
        taken = b""
        while len(taken) < 60_000:
            taken += os.read(reading, 65536)
        while stderr.writer.queued:
            await anyio.lowlevel.checkpoint()
            os.set_blocking(reading, False)
            try:
                taken += os.read(reading, 65536)
            except BlockingIOError:
                continue
        stderr.write(b"again\n")
        with anyio.move_on_after(5):
            await stderr.writer.drained()
        try:
            while chunk := os.read(reading, 65536):
                taken += chunk
        except BlockingIOError:
            pass
        tasks.cancel_scope.cancel()
    lost = 400_000 - taken.count(b"x") - taken.count(b"x\n")
    note = f"acp-mcp-bridge: {lost} bytes of stderr were not read in time\nagain\n".encode()
    assert taken.endswith(note)
    stderr.writer.close()
    os.close(reading)
