"""bridge.io.proctable: the process table as it is, and signals that never hit a stranger."""

import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.io import proctable
from bridge.io.proctable import (
    Proc,
    children,
    last_pid,
    look_up,
    marked,
    processes,
    signal_groups,
)
from tests.peers.processes import wait_until


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        ["sleep", "1000"], start_new_session=True, env={**os.environ, "TEST_MARK": mark}
    )
    process.mark = mark
    yield process
    process.kill()
    process.wait()


def test_a_process_is_found_with_its_parents_groups_and_start(sleeper):
    proc = look_up(sleeper.pid)
    assert proc is not None
    assert (proc.pid, proc.ppid) == (sleeper.pid, os.getpid())
    assert proc.pgid == proc.sid == sleeper.pid
    assert not proc.dead
    us = look_up(os.getpid())
    assert us is not None
    assert 0 < us.start <= proc.start
    assert proc.key == (proc.pid, proc.start)


def test_the_table_has_everybody_the_newest_first(sleeper, monkeypatch):
    found = [proc.pid for proc in processes()]
    assert {sleeper.pid, os.getpid()} <= set(found)
    # The numbers are a circle: those above the last one given out are of the round before.
    monkeypatch.setattr(proctable, "last_pid", lambda: sleeper.pid)
    found = [proc.pid for proc in processes()]
    assert found[0] == sleeper.pid
    cut = next((at for at, pid in enumerate(found) if pid > sleeper.pid), len(found))
    for part in (found[:cut], found[cut:]):
        assert part == sorted(part, reverse=True)
    assert all(pid > sleeper.pid for pid in found[cut:])


def test_a_name_made_to_confuse_does_not(tmp_path: Path):
    program = tmp_path / ") Z 1 (x"
    shutil.copy("/bin/sleep", program)
    process = subprocess.Popen([program, "1000"])
    try:
        proc = look_up(process.pid)
        assert proc is not None
        assert (proc.ppid, proc.dead) == (os.getpid(), False)
    finally:
        process.kill()
        process.wait()


def test_a_zombie_is_dead_and_still_our_child(sleeper):
    sleeper.kill()
    assert wait_until(lambda: (proc := look_up(sleeper.pid)) is not None and proc.dead)
    assert sleeper.pid in [proc.pid for proc in children() if proc.dead]
    sleeper.wait()
    assert look_up(sleeper.pid) is None
    assert sleeper.pid not in [proc.pid for proc in children()]


def test_children_are_found_without_their_file_of_proc(sleeper, monkeypatch):
    real = proctable.look_up

    def elsewhere(pid: int) -> Proc | None:
        with monkeypatch.context() as undone:
            undone.setattr(proctable, "PROC", "/proc")
            return real(pid)

    assert sleeper.pid in [proc.pid for proc in children()]
    # As of a kernel that was built without it: the directory is there, the file is not.
    monkeypatch.setattr(
        os,
        "listdir",
        lambda path, real=os.listdir: real(path)[-1:] if "task" in path else real(path),
    )
    monkeypatch.setattr(proctable, "look_up", elsewhere)
    original = os.open

    def missing(path, flags, *args):
        if str(path).endswith("/children"):
            raise FileNotFoundError(path)
        return original(path, flags, *args)

    monkeypatch.setattr(os, "open", missing)
    assert sleeper.pid in [proc.pid for proc in children()]


def test_a_mark_in_the_environment_is_seen(sleeper):
    mark = sleeper.mark.encode()
    assert marked(sleeper.pid, mark)
    assert not marked(sleeper.pid, mark + b"x")
    assert not marked(os.getpid(), mark)
    assert not marked(2**22, mark)


def test_a_large_environment_is_read_whole_and_in_the_middle_of_exec_waited_for():
    env = {f"FILLER{number}": "x" * 50_000 for number in range(8)} | {"ZZZ": "the-mark"}
    for _ in range(20):
        # Popen returns as soon as exec has closed the descriptors: half the time before the new
        # environment shows.
        process = subprocess.Popen(["/bin/sleep", "1000"], env=env)
        try:
            assert marked(process.pid, b"the-mark")
        finally:
            process.kill()
            process.wait()


def test_a_process_without_any_environment_is_soon_believed(monkeypatch):
    process = subprocess.Popen(["/bin/sleep", "1000"], env={})
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    try:
        assert not marked(process.pid, b"the-mark")
        # A kernel thread has none either.
        before = len(pauses)
        assert not marked(2, b"the-mark")
        assert len(pauses) == before <= 40
    finally:
        process.kill()
        process.wait()


def test_the_last_pid_moves_with_a_fork():
    before = last_pid()
    subprocess.run(["true"], check=True)
    assert last_pid() != before


def test_a_group_is_signalled_whole():
    process = subprocess.Popen(
        ["sh", "-c", "sleep 1000 & echo $!; wait"], stdout=subprocess.PIPE, start_new_session=True
    )
    other = int(process.stdout.readline())
    proc = look_up(other)
    assert proc is not None
    signal_groups([proc], signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL
    process.stdout.close()


def test_one_that_took_over_a_number_is_not_signalled(sleeper):
    proc = look_up(sleeper.pid)
    assert proc is not None
    proc.start -= 1
    signal_groups([proc], signal.SIGKILL)
    proc.start += 1
    signal_groups([proc], signal.SIGKILL, spared=[sleeper.pid])
    proc.dead = True
    signal_groups([proc], signal.SIGKILL)
    assert sleeper.poll() is None
    proc.dead = False
    signal_groups([proc], signal.SIGKILL)
    assert sleeper.wait(10) == -signal.SIGKILL


def test_our_own_group_is_never_signalled():
    us = look_up(os.getpid())
    assert us is not None
    signal_groups([us, Proc(1, 0, 1, 1, 0, False), Proc(2, 0, 0, 0, 0, False)], signal.SIGKILL)
    signal_groups([Proc(2**22, 1, 2**22, 2**22, 0, False)], signal.SIGKILL)


def test_without_proc_the_table_comes_from_ps(sleeper, monkeypatch):
    monkeypatch.setattr(proctable, "PROC", "/nonexistent")
    table = {proc.pid: proc for proc in processes()}
    assert table[sleeper.pid].ppid == os.getpid()
    assert table[sleeper.pid].pgid == sleeper.pid
    assert table[sleeper.pid].start == 0
    assert look_up(sleeper.pid) is None
    assert sleeper.pid in [proc.pid for proc in children()]
    assert last_pid() == 0


def test_without_proc_and_ps_the_table_is_empty(monkeypatch):
    monkeypatch.setattr(proctable, "PROC", "/nonexistent")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert list(processes()) == []
