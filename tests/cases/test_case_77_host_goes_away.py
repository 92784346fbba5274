"""Case 77: when its host goes away, the daemon ends its agents and itself."""

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.cases.conftest import Spawn, Way
from tests.peers.agent import scripted
from tests.peers.host import DAEMON, Host, config, packet
from tests.peers.processes import MARKER, marked, survivors, wait_until

DEAF = scripted("spawn=deaf", "eof=ignore", "term=ignore")


def in_mid_turn(host: Host, agent: list[str]) -> int | None:
    """A turn that has begun and does not end by itself; its id."""
    turn = host.start(agent, "say up\nhang", close_grace=0.5)
    assert wait_until(lambda: host.log.messages("session/prompt"))
    return turn


@pytest.mark.parametrize("agent", [scripted(), DEAF], ids=["tame", "deaf"])
def test_the_end_of_stdin_ends_an_open_turn(spawn: Spawn, way: Way, agent: list[str]) -> None:
    host = spawn("--loop", way.loop, **way.talk)
    turn = in_mid_turn(host, agent)
    host.close_stdin()
    assert host.exit_code(9) == 0
    host.check()
    response = host.answer(turn)
    if host.generation != "A":
        assert response["result"]["reply"] == "up"


def test_the_end_of_stdin_in_mid_packet_is_the_same(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    assert host.reply(scripted("spawn=1"), "say hi") == "hi"
    host.raw(packet({"id": 1, "operation": "status"})[:-3])
    host.close_stdin()
    assert host.exit_code(9) == 0
    host.check()


def test_the_end_of_stdin_before_anything_was_said(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.close_stdin()
    assert host.exit_code(9) == 0
    host.check()
    assert host.frames == []


def test_the_end_of_stdin_while_an_agent_starts(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.start(scripted("initialize=silent", "spawn=1"), "hi", close_grace=0.5)
    assert wait_until(lambda: host.log.messages("initialize"))
    host.close_stdin()
    assert host.exit_code(9) == 0
    host.check()


def test_a_hang_up_is_the_end_of_stdin(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    turn = in_mid_turn(host, DEAF)
    host.signal(signal.SIGHUP)
    assert host.exit_code(9) == 0
    host.check()
    assert host.answer(turn)["result"]["reply"] == "up"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_everything_in_time(spawn: Spawn, loop: str, number: int, code: int) -> None:
    host = spawn("--loop", loop)
    in_mid_turn(host, DEAF)
    host.signal(number)
    assert host.exit_code(5) == code
    host.check()


def test_a_second_signal_waits_for_no_grace(spawn: Spawn) -> None:
    host = spawn()
    turn = host.start(DEAF, "say up\nhang", close_grace=60)
    assert wait_until(lambda: host.log.messages("session/prompt"))
    host.signal(signal.SIGTERM)
    assert wait_until(lambda: host.log.messages("session/cancel") or host.ended, 3)
    host.signal(signal.SIGTERM)
    assert host.exit_code(3) == 143
    host.check()
    assert turn is not None


STDOUT_CLOSER = """
import subprocess, sys
daemon = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
daemon.stdin.write(bytes.fromhex(sys.argv[1]))
daemon.stdin.flush()
daemon.stdout.read(1)
daemon.stdout.close()
sys.exit(daemon.wait())
"""


def test_a_host_that_closes_stdout_is_gone(tmp_path: Path, loop: str) -> None:
    marker, log = uuid.uuid4().hex, tmp_path / "agent.ndjson"
    settings = config("C", ["flood 20000 64\nhang"], scripted("spawn=1"), close_grace=0.5)
    hello = packet({"id": 1, "operation": "hello", "protocol": 1, "events": ["update"]})
    prompt = packet({"id": 2, "operation": "prompt", "config": settings})
    daemon = [*DAEMON, "stream", "--loop", loop]
    command = [sys.executable, "-c", STDOUT_CLOSER, (hello + prompt).hex(), *daemon]
    environment = os.environ | {MARKER: marker, "SCRIPTED_LOG": str(log)}
    done = subprocess.run(command, env=environment, timeout=30, check=False)
    assert done.returncode == 0
    assert survivors(marker, 5) == []


HOST_PROGRAM = """
import subprocess, sys, time
daemon = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
daemon.stdin.write(bytes.fromhex(sys.argv[1]))
daemon.stdin.flush()
time.sleep(600)
"""


@pytest.mark.parametrize("agent", [scripted("spawn=1"), DEAF], ids=["tame", "deaf"])
def test_a_host_that_is_killed_takes_the_daemon_along(tmp_path: Path, agent: list[str]) -> None:
    marker, log = uuid.uuid4().hex, tmp_path / "agent.ndjson"
    settings = config("C", ["say up\nhang"], agent, close_grace=0.5)
    prompt = packet({"id": 1, "operation": "prompt", "config": settings})
    command = [sys.executable, "-c", HOST_PROGRAM, prompt.hex(), *DAEMON, "stream"]
    environment = os.environ | {MARKER: marker, "SCRIPTED_LOG": str(log)}
    with subprocess.Popen(command, env=environment) as host:
        assert wait_until(lambda: log.exists() and "session/prompt" in log.read_text())
        os.kill(host.pid, signal.SIGKILL)
    assert survivors(marker, 9) == []


def test_the_next_daemon_starts_cleanly_for_the_same_work(spawn: Spawn) -> None:
    first = spawn()
    in_mid_turn(first, DEAF)
    os.killpg(first.pid, signal.SIGKILL)
    second = spawn()
    assert second.reply(scripted(), "say again") == "again"
    assert first.survivors(4) == []
    assert marked(second.marker)
    second.shutdown()


@pytest.mark.parametrize("generation", ["B", "C"])
def test_open_turns_are_told_of_a_shutdown(spawn: Spawn, generation: str) -> None:
    host = spawn(generation=generation)
    turn = in_mid_turn(host, DEAF)
    stop = host.send("shutdown")
    response = host.answer(turn, 10)
    assert (response["ok"], response["result"]["stop_reason"]) == (True, "cancelled")
    assert response["result"]["reply"] == "up"
    assert json.dumps(host.answer(stop, 10)["result"]) == '{"response_metadata": {}}'
    host.close_stdin()
    assert host.exit_code(9) == 0
    host.check()
