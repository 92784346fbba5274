"""Which processes of a test live, known by a marker in their environment."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

MARKER = "ACP_TEST_MARKER"


def alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def marked(marker: str) -> list[int]:
    """Every living process whose environment at its start held the marker."""
    wanted = f"{MARKER}={marker}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0") and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return [pid for pid in found if alive(pid)]


def describe(pid: int) -> str:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return f"{pid} (gone)"
    return f"{pid} {command.decode(errors='replace')[:120]}"


def wait_until(condition: Callable[[], object], seconds: float = 20) -> bool:
    """Polls for what no event tells: another process's state, a file."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def kill_all(pids: Iterable[int]) -> None:
    """Clears up after a test that would otherwise leave something."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def survivors(marker: str, seconds: float) -> list[str]:
    """The processes that still live when the time is up; returns at once when none does."""
    wait_until(lambda: not marked(marker), seconds)
    return [describe(pid) for pid in marked(marker)]
