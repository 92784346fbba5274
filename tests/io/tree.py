"""What the process tests share: scripts, waiting and counting, without the code under test."""

import os
from collections.abc import Callable
from pathlib import Path

import anyio

from bridge.io.process import Process


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


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


async def until(condition: Callable[[], bool], within: float = 10) -> None:
    """Waits for what no event tells of; fails after `within` seconds."""
    with anyio.fail_after(within):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.005)


async def lines(process: Process, count: int) -> list[str]:
    """The next `count` lines of a child's stdout, which must be all it writes for now."""
    data = b""
    with anyio.fail_after(10):
        while data.count(b"\n") < count:
            chunk = await process.stdout.receive()
            assert chunk, f"stdout ended after {data!r}"
            data += chunk
    return data.decode().split("\n")[:count]


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))
