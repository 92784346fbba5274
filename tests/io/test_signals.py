"""Signals that come before the receiver, unread when it is left, and after it."""

import subprocess
import sys

LATE = """
import os, signal, sys, anyio
from bridge.config import backend
from bridge.io import signals

def send():
    os.kill(os.getpid(), signal.SIGTERM)

async def main():
    with signals.receive(signal.SIGTERM, signal.SIGINT) as received:
        send()
        async for number in received:
            send()
            await anyio.sleep(0.05)
            break
    send()
    return 5

sys.exit(anyio.run(main, **backend(sys.argv[1])))
"""
EARLY = LATE.replace(
    "async def main",
    "real = anyio.open_signal_receiver\n"
    "def slow(*numbers):\n"
    "    send()\n"
    "    return real(*numbers)\n"
    "anyio.open_signal_receiver = slow\n"
    "async def main",
)


def ended(program: str, loop: str) -> int:
    return subprocess.run([sys.executable, "-c", program, loop], timeout=30, check=False).returncode


def test_one_that_nobody_read_and_one_that_comes_after_change_nothing(loop: str) -> None:
    assert ended(LATE, loop) == 5


def test_one_that_comes_before_anything_stands_ends_the_process(loop: str) -> None:
    assert ended(EARLY, loop) == 128 + 15
