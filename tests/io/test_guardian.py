"""bridge.io.guardian: small daemons of our own, killed in every way; nothing of theirs is left."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers.processes import MARKER, alive, marked, wait_until

LOOPS = {
    "asyncio": ["asyncio", {}],
    "uvloop": ["asyncio", {"use_uvloop": True}],
    "trio": ["trio", {}],
}
ROOT = Path(__file__).parents[2]
WASHED = "env -i sh -c 'echo $$; exec sleep 1000 </dev/null >/dev/null 2>&1'"
TREES = {
    "a plain child": "echo $$; exec sleep 1000",
    "a worker and its child": "sh -c 'sleep 1000 & echo $$; exec sleep 1000' & wait",
    "an escapee in its own session": "setsid sh -c 'echo $$; exec sleep 1000' & wait",
    "a daemon that forked twice": "setsid -f sh -c 'echo $$; exec sleep 1000'; cat",
    "one with its environment cleared": f"setsid {WASHED} & wait",
    "one deaf to everything": "trap '' TERM HUP INT; setsid sh -c 'echo $$; sleep 1000' & wait",
}


class Daemon:
    def __init__(self, mark: str, loop: str, *scripts: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.io.guarded", json.dumps(LOOPS[loop]), *scripts],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, MARKER: mark},
            cwd=ROOT,
            start_new_session=True,
        )
        self.guardian = int(self.line().split()[1])
        self.pids: list[int] = []
        while (line := self.line()) != "ready":
            self.pids += [int(word) for word in line.split()[1:] if word.isdigit()]

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().strip()

    def order(self, text: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n".encode())
        self.process.stdin.flush()
        return self.line()

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def at_end_of_stdout(self) -> bool:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], 5)
        return bool(ready) and os.read(self.process.stdout.fileno(), 4096) == b""


@pytest.fixture
def start(mark: str):
    daemons: list[Daemon] = []

    def start(loop: str, *scripts: str) -> Daemon:
        daemons.append(Daemon(mark, loop, *scripts))
        return daemons[-1]

    yield start
    for daemon in daemons:
        daemon.process.kill()
        daemon.process.wait()
        daemon.process.stdin.close()
        daemon.process.stdout.close()
        assert wait_until(lambda pid=daemon.guardian: not alive(pid))


@pytest.mark.parametrize("loop", LOOPS)
def test_a_daemon_killed_with_its_group_leaves_nothing(loop, start, mark):
    daemon = start(loop, *TREES.values())
    assert len(daemon.pids) == 2 * len(TREES)
    assert all(alive(pid) for pid in daemon.pids)
    daemon.kill()
    assert daemon.at_end_of_stdout()
    assert wait_until(lambda: not any(map(alive, [*daemon.pids, daemon.guardian])), 2)
    assert marked(mark) == []


def test_the_end_of_stdout_does_not_wait_for_the_guardian(start, mark):
    daemon = start("uvloop", TREES["a plain child"])
    os.kill(daemon.guardian, signal.SIGSTOP)
    daemon.kill()
    assert daemon.at_end_of_stdout()
    assert all(alive(pid) for pid in daemon.pids)
    os.kill(daemon.guardian, signal.SIGCONT)
    assert wait_until(lambda: not any(map(alive, daemon.pids)))


def test_the_guardian_holds_nothing_of_the_daemon_s(start):
    daemon = start("asyncio", TREES["a plain child"])
    fds = Path(f"/proc/{daemon.guardian}/fd")
    held = [os.readlink(fd) for fd in fds.iterdir()]
    assert sorted(target.partition(":")[0] for target in held) == ["/dev/null"] * 3 + ["pipe"]
    assert os.getsid(daemon.guardian) == os.getpgid(daemon.guardian) == daemon.guardian
    assert os.readlink(f"/proc/{daemon.guardian}/cwd") == "/"
    assert Path(f"/proc/{daemon.guardian}/comm").read_text() == "acp-guardian\n"


def test_a_daemon_without_stdio_does_not_talk_to_its_guardian_by_mistake():
    program = (
        "import os\nfrom bridge.io.guardian import Guardian\n"
        "os.closerange(0, 3)\nguardian = Guardian.start()\n"
        "assert set(os.listdir('/dev/fd')) & {'0', '1', '2'} <= {'0'}\n"
        "guardian.close()\n"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_signals_do_not_keep_the_guardian_from_its_work(start):
    daemon = start("trio", TREES["an escapee in its own session"])
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        os.kill(daemon.guardian, sig)
    assert alive(daemon.guardian)
    daemon.kill()
    assert wait_until(lambda: not any(map(alive, daemon.pids)))


def test_two_daemons_do_not_disturb_each_other(start):
    first = start("uvloop", *TREES.values())
    second = start("uvloop", *TREES.values())
    first.kill()
    assert wait_until(lambda: not any(map(alive, [*first.pids, first.guardian])))
    assert all(map(alive, [*second.pids, second.guardian]))
    second.kill()
    assert wait_until(lambda: not any(map(alive, [*second.pids, second.guardian])))


def test_of_a_daemon_inside_a_daemon_nothing_is_left_either(start, mark):
    tree = TREES["a daemon that forked twice"].replace("$$", "\\$\\$")
    inner = f"{sys.executable} -m tests.io.guarded '{json.dumps(LOOPS['asyncio'])}' \"{tree}\""
    outer = start("asyncio", f"{inner} | while read line; do echo $line; done")
    # The inner one, its guardian, the pipe's reader, its shell and what that started.
    assert wait_until(lambda: len(marked(mark)) >= 7)
    outer.kill()
    assert wait_until(lambda: marked(mark) == [])


def test_an_orphan_without_mark_is_known_to_the_guardian_after_the_chores(start):
    daemon = start("asyncio", f"read go; setsid -f {WASHED}; cat")
    assert daemon.order("chores") == "done"
    daemon.kill()
    assert wait_until(lambda: not any(map(alive, daemon.pids)))


@pytest.mark.parametrize("loop", LOOPS)
def test_when_a_daemon_has_ended_in_order_nothing_is_left_for_a_moment(loop, start, mark):
    daemon = start(loop, *TREES.values())
    daemon.process.stdin.close()
    daemon.process.wait(30)
    assert not any(map(alive, [*daemon.pids, daemon.guardian]))
    assert marked(mark) == []
    assert daemon.process.returncode == 0


def test_what_the_daemon_did_not_stop_is_gone_before_it_is(start, mark):
    daemon = start("uvloop", *TREES.values(), f"read go; setsid -f {WASHED}; cat")
    daemon.order("abandon")
    daemon.process.wait(30)
    assert not any(map(alive, [*daemon.pids, daemon.guardian]))
    assert marked(mark) == []


def test_a_helper_that_is_spared_outlives_the_daemon(start):
    daemon = start("uvloop", TREES["a plain child"])
    helper = int(daemon.order("spare"))
    daemon.order("abandon")
    daemon.process.wait(30)
    assert not any(map(alive, [*daemon.pids, daemon.guardian]))
    assert alive(helper)
    os.kill(helper, signal.SIGKILL)
    assert wait_until(lambda: not alive(helper))


@pytest.mark.parametrize("count", range(1, 9))
def test_a_daemon_killed_while_it_starts_and_stops_children_leaves_nothing(count, start, mark):
    daemon = start("uvloop", "churn")
    for _ in range(count):
        assert daemon.line() == "one more"
    daemon.kill()
    assert wait_until(lambda: not alive(daemon.guardian))
    assert marked(mark) == []
