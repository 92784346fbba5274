"""bridge.io.process: real children on three loops, and nothing left of them, whatever they do."""

import math
import os
import signal

import anyio
import pytest

from bridge.io.process import ExitStatus, Family, spawn
from tests.io.tree import lines, open_fds, shell, until, zombies
from tests.peers.processes import MARKER, alive, marked

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("adopting")]

DEAF = "trap '' TERM HUP INT; echo ready; exec sleep 1000"


async def test_a_child_answers_on_its_pipes_and_its_exit_code_is_seen(env):
    async with spawn(["sh", "-c", "cat; exit 3"], env=env, family=Family()) as child:
        assert child.status is None
        assert child.stdin is not None
        child.stdin.post(b"hello\n")
        assert await lines(child, 1) == ["hello"]
        child.stdin.close()
        assert await child.wait() == ExitStatus(3, None)
        assert str(child.status) == "exit code 3"


async def test_a_signal_is_named(env):
    async with spawn(shell("kill -KILL $$"), env=env, family=Family()) as child:
        assert str(await child.wait()) == "signal SIGKILL"
        assert child.status == ExitStatus(None, "SIGKILL")


async def test_the_exit_is_seen_while_a_grandchild_holds_the_pipes_open(env, mark):
    async with spawn(shell("sleep 1000 & exit 4"), env=env, family=Family()) as child:
        with anyio.fail_after(10):
            assert (await child.wait()).code == 4
        assert len(marked(mark)) == 1


async def test_the_child_leads_a_session_of_its_own(env):
    async with spawn(["cat"], env=env, family=Family()) as child:
        assert os.getsid(child.pid) == os.getpgid(child.pid) == child.pid


async def test_the_environment_is_the_one_given_and_the_mark(env, tmp_path):
    async with spawn(["env"], env=env, cwd=str(tmp_path), family=Family()) as child:
        await child.wait()
        found = (await child.stdout.receive()).decode().split()
        names = {line.partition("=")[0] for line in found}
    assert names - {"PWD"} == {"PATH", MARKER, "ACP_MCP_BRIDGE_FAMILY"}


async def test_what_was_written_last_is_readable_after_the_stop(env):
    async with spawn(shell("cat >/dev/null; echo last words"), env=env, family=Family()) as child:
        await child.stop(eof=10, term=10)
        assert await child.stdout.receive() == b"last words\n"
        assert await child.stdout.receive() == b""


# stderr


async def test_two_mebibytes_of_stderr_without_a_newline_block_nothing(env):
    seen: list[int] = []
    script = "head -c 2097152 /dev/zero | tr '\\0' x >&2; echo done"
    async with spawn(
        shell(script), env=env, family=Family(), on_stderr=lambda chunk: seen.append(len(chunk))
    ) as child:
        assert await lines(child, 1) == ["done"]
        await child.wait()
        await child.drained_stderr(10)
        assert sum(seen) == 2 << 20
        assert child.stderr_tail() == "x" * 65536


async def test_the_stderr_tail_survives_bytes_that_are_not_text(env):
    async with spawn(shell("printf 'a\\377b' >&2"), env=env, family=Family()) as child:
        await child.wait()
        await child.drained_stderr(10)
        assert child.stderr_tail() == "a\ufffdb"


async def test_waiting_for_the_end_of_stderr_is_bounded(env):
    async with spawn(shell("sleep 1000 & echo word >&2"), env=env, family=Family()) as child:
        await child.wait()
        with anyio.fail_after(10):
            await child.drained_stderr(0.01)
        assert child.stderr_tail() == "word\n"


async def test_merged_stderr_comes_down_stdout_in_order(env):
    script = "echo 1; echo 2 >&2; echo 3"
    async with spawn(shell(script), env=env, family=Family(), merge_stderr=True) as child:
        assert await lines(child, 3) == ["1", "2", "3"]
        await child.drained_stderr(math.inf)
        assert child.stderr_tail() == ""


async def test_without_stdin_the_child_reads_an_end_of_file(env):
    async with spawn(shell("cat; echo over"), env=env, family=Family(), stdin=False) as child:
        assert child.stdin is None
        assert await lines(child, 1) == ["over"]


# The ladder


async def test_a_child_that_heeds_the_end_of_its_input_gets_no_signal(env):
    script = "trap 'exit 9' TERM; cat; exit 0"
    async with spawn(shell(script), env=env, family=Family()) as child:
        await child.stop(eof=10, term=10)
        assert child.status == ExitStatus(0, None)


async def test_a_child_deaf_to_the_end_of_its_input_gets_a_term(env):
    script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done"
    async with spawn(shell(script), env=env, family=Family()) as child:
        await lines(child, 1)
        await child.stop(eof=0.01, term=10)
        assert child.status == ExitStatus(9, None)


async def test_a_child_deaf_to_everything_is_killed(env):
    async with spawn(shell(DEAF), env=env, family=Family()) as child:
        await lines(child, 1)
        await child.stop(eof=0.01, term=0.01)
        assert child.status == ExitStatus(None, "SIGKILL")


async def test_hastening_skips_the_waits_that_are_left(env):
    async with spawn(shell(DEAF), env=env, family=Family()) as child:
        await lines(child, 1)
        hasten = anyio.Event()
        async with anyio.create_task_group() as tasks:

            async def stop() -> None:
                with anyio.fail_after(20):
                    await child.stop(eof=math.inf, term=math.inf, hasten=hasten)

            tasks.start_soon(stop)
            await until(lambda: child.stdin is not None and child.stdin.closed)
            assert alive(child.pid)
            hasten.set()
        assert child.status == ExitStatus(None, "SIGKILL")


async def test_two_tasks_may_stop_it_and_the_shorter_waits_hold(env):
    async with spawn(shell(DEAF), env=env, family=Family()) as child:
        await lines(child, 1)
        ended: list[int] = []

        async def stop(number: int, eof: float, term: float) -> None:
            await child.stop(eof=eof, term=term)
            ended.append(number)

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stop, 1, math.inf, math.inf)
                await until(lambda: child.stdin is not None and child.stdin.closed)
                tasks.start_soon(stop, 2, 0, 0)
        assert sorted(ended) == [1, 2]
        await child.stop(eof=math.inf, term=math.inf)


async def test_a_cancelled_stop_goes_on_to_the_end(env):
    async with spawn(shell(DEAF), env=env, family=Family()) as child:
        await lines(child, 1)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await child.stop(eof=0.01, term=0.01)
        assert child.status == ExitStatus(None, "SIGKILL")


async def test_leaving_under_cancellation_stops_the_child(env):
    with anyio.CancelScope() as scope:
        async with spawn(shell(DEAF), env=env, family=Family()) as child:
            await lines(child, 1)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert child.status == ExitStatus(None, "SIGKILL")


async def test_a_spawn_in_a_cancelled_scope_leaves_nothing(env):
    with anyio.CancelScope() as scope:
        scope.cancel()
        async with spawn(shell(DEAF), env=env, family=Family()):
            await anyio.sleep_forever()
    assert scope.cancelled_caught


async def test_an_error_in_the_context_comes_out_as_it_is(env):
    with pytest.raises(KeyError):
        async with spawn(["cat"], env=env, family=Family()) as child:
            raise KeyError("mine")
    assert child.status is not None


async def test_signals_go_to_the_group_until_it_is_stopped(env):
    script = "trap 'exit 7' USR1; echo ready; while :; do sleep 0.01; done"
    async with spawn(shell(script), env=env, family=Family()) as child:
        await lines(child, 1)
        child.signal_group(signal.SIGUSR1)
        assert await child.wait() == ExitStatus(7, None)
        await child.stop(eof=0, term=0)
        child.signal_group(signal.SIGKILL)


# Housekeeping


async def test_fifty_children_leave_no_descriptor_and_no_zombie(env):
    family = Family(exclusive=True)
    async with spawn(["true"], env=env, family=family):
        pass
    before = open_fds()
    for _ in range(50):
        async with spawn(shell("setsid -f true; cat"), env=env, family=family) as child:
            await child.stop(eof=10, term=10)
    assert open_fds() == before
    assert child.pid not in zombies()


async def test_orphans_that_die_are_buried_while_the_child_lives(env, monkeypatch):
    monkeypatch.setattr("bridge.io.family._UNREAPED_AFTER", 0)
    family = Family(exclusive=True)
    before = set(zombies())
    async with spawn(shell("setsid -f sh -c 'echo $$'; cat"), env=env, family=family) as child:
        (orphan,) = await lines(child, 1)
        await until(lambda: int(orphan) in zombies() or not os.path.exists(f"/proc/{orphan}"))
        family.chores()
        family.chores()
        assert int(orphan) not in zombies()
        assert child.status is None
        child.signal_group(signal.SIGKILL)
        # Burying the others never takes the status of a child we started.
        family.chores()
        assert str(await child.wait()) == "signal SIGKILL"
    assert set(zombies()) <= before


async def test_without_pidfds_exits_are_found_by_polling(env, monkeypatch):
    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    async with spawn(shell("cat; exit 6"), env=env, family=Family()) as child:
        await child.stop(eof=10, term=10)
        assert child.status == ExitStatus(6, None)
