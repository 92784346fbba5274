"""bridge.io.process: of whatever tree a child grew, nothing is left when it has been stopped."""

import sys
from collections.abc import Callable

import anyio
import pytest

from bridge.io.process import ExitStatus, Family, Process, spawn
from tests.io.tree import lines, shell, until
from tests.peers.processes import alive, marked

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("adopting")]


async def stopped_gently(child: Process) -> None:
    await child.stop(eof=0.05, term=0.3)


async def stopped_at_once(child: Process) -> None:
    await child.stop(eof=0, term=0)


WASHED = "env -i sh -c 'echo $$; exec sleep 1000 </dev/null >/dev/null 2>&1'"
TREES = {
    "a worker and its child": "sh -c 'sleep 1000 & echo $$; exec sleep 1000' &",
    "an escapee in its own session": "setsid sh -c 'echo $$; exec sleep 1000' &",
    "a daemon that forked twice": "setsid -f sh -c 'echo $$; exec sleep 1000';",
    "one with its environment cleared": f"setsid -f {WASHED};",
    "a deaf one with its environment cleared": f"trap '' TERM HUP; setsid {WASHED} &",
    "an escapee deaf to everything": "trap '' TERM HUP; setsid sh -c 'echo $$; sleep 1000' &",
}


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("stop", [stopped_gently, stopped_at_once])
async def test_nothing_is_left_of(tree: str, stop: Callable, env, mark):
    async with spawn(shell(f"{TREES[tree]} cat"), env=env, family=Family(exclusive=True)) as child:
        (worker,) = await lines(child, 1)
        with anyio.fail_after(20):
            await stop(child)
        assert marked(mark) == []
        assert not alive(int(worker))


@pytest.mark.parametrize("tree", TREES)
async def test_nothing_is_left_where_the_launcher_died_first_of(tree: str, env, mark):
    async with spawn(
        shell(f"{TREES[tree]} exit 5"), env=env, family=Family(exclusive=True)
    ) as child:
        (worker,) = await lines(child, 1)
        assert await child.wait() == ExitStatus(5, None)
        with anyio.fail_after(20):
            await child.stop(eof=10, term=0.05)
        assert marked(mark) == []
        assert not alive(int(worker))


async def test_a_sole_survivor_gets_the_term_before_the_kill(env, tmp_path):
    note = tmp_path / "note"
    tidy = f"trap 'echo tidied > {note}; exit' TERM; echo up; while :; do sleep 0.01; done"
    async with spawn(
        shell(f"setsid sh -c '{tidy.replace(chr(39), chr(34))}' & exit 0"), env=env, family=Family()
    ) as child:
        await lines(child, 1)
        await child.wait()
        await child.stop(eof=0, term=10)
    assert note.read_text() == "tidied\n"


async def test_one_session_s_end_leaves_the_others_alone(env):
    family = Family(exclusive=True)
    tree = shell("setsid sh -c 'echo $$; exec sleep 1000' & wait")
    async with spawn(tree, env=env, family=family) as first:
        (mine,) = await lines(first, 1)
        async with spawn(tree, env=env, family=family) as second:
            (theirs,) = await lines(second, 1)
            await first.stop(eof=0, term=0)
            assert not alive(int(mine))
            assert alive(int(theirs))
            assert second.status is None


HOPPER = """
import os, sys, time
os.write(1, b"ready\\n")
end = time.monotonic() + 60
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
    if len(sys.argv) > 1:
        os.setsid()
"""
BOMB = """
import os, time
os.write(1, b"ready\\n")
for depth in range(7):
    if os.fork() == 0 and depth % 3 == 0:
        os.setsid()
    time.sleep(0.005)
time.sleep(1000)
"""


@pytest.mark.parametrize("argument", [[], ["setsid"]])
async def test_one_that_forks_and_dies_again_and_again_is_caught(argument, env, monkeypatch):
    monkeypatch.setattr("bridge.io.family._UNREAPED_AFTER", 0)
    family = Family(exclusive=True)
    argv = [sys.executable, "-I", "-S", "-c", HOPPER, *argument]
    async with spawn(argv, env=env, family=family) as child:
        await lines(child, 1)
        await child.stop(eof=0, term=0, kill=10)
        with anyio.fail_after(10):
            # Nobody is left who could write to it.
            assert await child.stdout.receive() == b""
    family.chores()
    family.chores()


async def test_a_modest_fork_bomb_is_caught(env):
    argv = [sys.executable, "-I", "-S", "-c", BOMB]
    async with spawn(argv, env=env, family=Family()) as child:
        await lines(child, 1)
        await child.stop(eof=0, term=0, kill=10)
        with anyio.fail_after(10):
            assert await child.stdout.receive() == b""


async def test_a_machine_without_room_for_a_thread_is_no_obstacle(env, monkeypatch):
    async def full(*args: object, **options: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(anyio.to_thread, "run_sync", full)
    tree = shell("setsid sh -c 'echo $$; exec sleep 1000' & wait")
    async with spawn(tree, env=env, family=Family()) as child:
        (worker,) = await lines(child, 1)
        await child.stop(eof=0, term=0)
        assert not alive(int(worker))


async def test_without_proc_the_group_and_the_descendants_are_still_ended(env, monkeypatch):
    monkeypatch.setattr("bridge.io.proctable.PROC", "/nonexistent")
    monkeypatch.setattr("bridge.io.family.PROC", "/nonexistent")
    tree = shell("setsid sh -c 'echo $$; exec sleep 1000' & wait")
    async with spawn(tree, env=env, family=Family()) as child:
        (worker,) = await lines(child, 1)
        await child.stop(eof=0.01, term=0)
        assert not alive(int(worker))
        assert child.status is not None


async def test_without_proc_and_ps_the_group_is_still_ended(env, mark, monkeypatch):
    monkeypatch.setattr("bridge.io.proctable.PROC", "/nonexistent")
    monkeypatch.setattr("bridge.io.family.PROC", "/nonexistent")
    monkeypatch.setattr("bridge.io.proctable._processes_of_ps", list)
    tree = shell("trap '' TERM; sleep 1000 & echo $$; exec sleep 1000")
    async with spawn(tree, env=env, family=Family()) as child:
        await lines(child, 1)
        with anyio.fail_after(20):
            await child.stop(eof=0.01, term=0.01, kill=1000)
        assert child.status == ExitStatus(None, "SIGKILL")
    await until(lambda: marked(mark) == [])
