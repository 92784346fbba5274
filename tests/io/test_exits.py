"""bridge.io.exits: how a child ended, seen without taking it away."""

import os
import signal
import subprocess
from collections.abc import Callable

import anyio
import pytest

from bridge.io.exits import ExitStatus, exit_of, peek
from tests.peers.processes import wait_until


@pytest.fixture
def child():
    children: list[subprocess.Popen[bytes]] = []

    def start(script: str) -> subprocess.Popen[bytes]:
        children.append(subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE))
        return children[-1]

    yield start
    for process in children:
        process.kill()
        process.wait()
        process.stdin.close()


def nothing() -> None:
    """No chores."""


def test_a_status_says_which_of_the_two_it_was():
    assert str(ExitStatus(3, None)) == "exit code 3"
    assert str(ExitStatus(None, "SIGKILL")) == "signal SIGKILL"
    assert ExitStatus(3, None) == ExitStatus(3, None)


@pytest.mark.parametrize(
    "script, status",
    [
        ("exit 0", ExitStatus(0, None)),
        ("exit 255", ExitStatus(255, None)),
        ("kill -TERM $$", ExitStatus(None, "SIGTERM")),
        ("ulimit -c 0; kill -SEGV $$", ExitStatus(None, "SIGSEGV")),
        ("kill -40 $$", ExitStatus(None, "SIG40")),
    ],
)
@pytest.mark.parametrize("waitid", [True, False])
def test_the_end_is_seen(script, status, waitid, child: Callable, monkeypatch):
    if not waitid:
        monkeypatch.delattr(os, "waitid")
    process = child(script)
    assert wait_until(lambda: peek(process) is not None)
    assert peek(process) == peek(process) == status
    assert (process.returncode is None) == waitid


def test_a_running_child_has_no_status(child: Callable):
    assert peek(child("read line")) is None


def test_a_child_that_somebody_else_took_is_ended_all_the_same(child: Callable):
    process = child("exit 7")
    os.waitpid(process.pid, 0)
    assert peek(process) is not None


@pytest.mark.anyio
@pytest.mark.parametrize("pidfd", [True, False])
async def test_waiting_ends_with_the_child(pidfd, child: Callable, monkeypatch):
    if not pidfd:
        monkeypatch.delattr(os, "pidfd_open")
    process = child("read line; exit 5")
    statuses: list[ExitStatus] = []

    async def wait() -> None:
        statuses.append(await exit_of(process, nothing))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert statuses == []
            process.stdin.write(b"\n")
            process.stdin.flush()
    assert statuses == [ExitStatus(5, None)]


@pytest.mark.anyio
async def test_chores_are_done_while_it_runs(child: Callable, monkeypatch):
    monkeypatch.setattr("bridge.io.exits._CHORES_EVERY", 0.001)
    process = child("read line")
    done = 0

    def chore() -> None:
        nonlocal done
        done += 1
        if done == 3:
            process.send_signal(signal.SIGTERM)

    with anyio.fail_after(10):
        assert await exit_of(process, chore) == ExitStatus(None, "SIGTERM")
    assert done >= 3


@pytest.mark.anyio
async def test_a_cancelled_wait_leaves_no_descriptor(child: Callable):
    process = child("read line")
    before = len(os.listdir("/proc/self/fd"))
    with anyio.move_on_after(0.01):
        await exit_of(process, nothing)
    assert len(os.listdir("/proc/self/fd")) == before
