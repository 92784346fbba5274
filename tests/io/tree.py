"""What the process tests share: who is alive, found without the code under test."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import anyio

from bridge.io.process import Process


def alive(pid: int) -> bool:
    """Whether the process exists and is more than a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def zombies() -> list[int]:
    """Our own children that have exited and were not buried."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state == "Z" and int(parent) == os.getpid():
                found.append(int(entry.name))
    return found


def carriers(mark: str) -> list[int]:
    """The living processes with `mark` in their environment."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environ = (entry / "environ").read_bytes()
            except OSError:
                continue
            if mark.encode() in environ and alive(int(entry.name)):
                found.append(int(entry.name))
    return found


async def until(condition: Callable[[], bool], within: float = 10) -> None:
    """Waits for what no event tells of; fails after `within` seconds."""
    with anyio.fail_after(within):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.005)


def until_sync(condition: Callable[[], bool], within: float = 10) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


async def lines(process: Process, count: int) -> list[str]:
    """The next `count` lines of a child's stdout, which must be all it writes for now."""
    data = b""
    with anyio.fail_after(10):
        while data.count(b"\n") < count:
            chunk = await process.stdout.receive()
            assert chunk, f"stdout ended after {data!r}"
            data += chunk
    return data.decode().split("\n")[:count]


def kill_all(pids: Iterable[int]) -> None:
    """Clears up after a test that would otherwise leave something."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))
