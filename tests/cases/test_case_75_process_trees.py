"""Case 75: with a session's end goes everything it started, whoever started it and however."""

import os
import signal
from collections.abc import Callable

import pytest

from tests.cases.conftest import Spawn
from tests.peers.agent import scripted
from tests.peers.host import Host
from tests.peers.processes import marked, wait_until

# A launcher as npx or a shell shim is one: it passes no signal on, and its worker speaks.
LAUNCHER = ["sh", "-c", 'exec 3<&0; trap "" TERM; "$@" <&3 & wait', "launcher"]
WORKERS = {
    "launched": [*LAUNCHER, *scripted("spawn=1")],
    "launched, deaf": [*LAUNCHER, *scripted("spawn=deaf", "eof=ignore", "term=ignore")],
    "direct": scripted("spawn=1"),
    "direct, deaf": scripted("spawn=deaf", "eof=ignore", "term=ignore"),
}


@pytest.fixture(params=list(WORKERS))
def agent(request: pytest.FixtureRequest) -> list[str]:
    return WORKERS[request.param]


def start(host: Host, agent: list[str]) -> None:
    """One turn, which leaves a child in a session of its own beside what the agent began with."""
    child = int(host.reply(agent, "spawn 1", close_grace=0.5).strip("[]"))
    begun = {child, host.log.events("start")[0]["pid"]}
    assert wait_until(lambda: begun < set(workers(host))), (begun, workers(host))


def workers(host: Host) -> list[int]:
    """The scripted agents and their children, not the daemon's own helpers."""
    started = [record["pid"] for record in host.log.events("start")]
    return [pid for pid in marked(host.marker) if pid in started or is_sleeper(pid)]


def is_sleeper(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline") as command:
            return "time.sleep(600)" in command.read()
    except OSError:
        return False


def test_shutdown_leaves_nothing(spawn: Spawn, loop: str, agent: list[str]) -> None:
    host = spawn("--loop", loop)
    start(host, agent)
    host.shutdown()


def test_closing_a_session_leaves_nothing_of_it(spawn: Spawn, agent: list[str]) -> None:
    host = spawn()
    start(host, agent)
    assert host.call("close")["ok"] is True
    assert wait_until(lambda: not workers(host), 5), workers(host)
    host.shutdown()


def test_a_turn_past_its_deadline_leaves_nothing_of_a_deaf_agent(
    spawn: Spawn, loop: str, agent: list[str]
) -> None:
    host = spawn("--loop", loop)
    start(host, agent)
    response = host.prompt(None, "hang", turn_timeout=0.3, close_grace=0.3, seconds=10)
    assert response["code"] == "timeout"
    assert wait_until(lambda: not workers(host), 8), workers(host)
    host.shutdown()


def test_sigterm_leaves_nothing(spawn: Spawn, loop: str, agent: list[str]) -> None:
    host = spawn("--loop", loop)
    start(host, agent)
    host.start(None, "say up\nhang")
    host.signal(signal.SIGTERM)
    assert host.exit_code(5) == 143
    host.check()


@pytest.mark.parametrize("to", ["the daemon", "its group"])
def test_sigkill_of_the_daemon_leaves_nothing(spawn: Spawn, agent: list[str], to: str) -> None:
    host = spawn()
    start(host, agent)
    kill: Callable[[int, int], None] = os.kill if to == "the daemon" else os.killpg
    kill(host.pid, signal.SIGKILL)
    assert host.exit_code(5) == -signal.SIGKILL
    assert host.survivors(4) == []


def test_a_launcher_that_dies_takes_its_worker_along(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.hello()
    start(host, WORKERS["launched, deaf"])
    worker = host.log.events("start")[0]["pid"]
    with open(f"/proc/{worker}/stat") as stat:
        launcher = int(stat.read().rpartition(")")[2].split()[1])
    os.kill(launcher, signal.SIGKILL)
    assert host.event("exit", 10)["signal"] == "SIGKILL"
    assert wait_until(lambda: not workers(host), 8), workers(host)
    assert host.prompt(None, "say no")["code"] == "agent_exited"
    host.shutdown()


def test_a_crash_of_the_agent_takes_its_children_along(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    start(host, WORKERS["direct, deaf"])
    assert host.prompt(None, "exit 3")["code"] == "agent_exited"
    assert wait_until(lambda: not workers(host), 8), workers(host)
    host.shutdown()


def test_one_session_s_end_leaves_another_s_processes_alone(spawn: Spawn) -> None:
    host = spawn()
    for name in ("one", "two"):
        assert host.answer(host.start(scripted("spawn=1"), "say hi", session=name))["ok"] is True
    assert len(workers(host)) == 4
    assert host.call("close", session="one")["ok"] is True
    assert wait_until(lambda: len(workers(host)) == 2, 5), workers(host)
    assert host.answer(host.start(None, "say on", session="two"))["result"]["reply"] == "on"
    host.shutdown()
