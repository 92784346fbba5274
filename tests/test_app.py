"""The daemon as a process: its framing, its stdout, and each way in which it ends (§1 and §5)."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.app import Ending
from tests.conftest import Spawn
from tests.peers.agent import scripted
from tests.peers.host import DAEMON, Host, line, packet
from tests.peers.processes import alive, wait_until
from tests.session.room import SOON

STATUS = {"operation": "status"}
DEAF = scripted("eof=ignore", "term=ignore", "spawn=deaf")


def answers(host: Host, count: int) -> list[dict[str, Any]]:
    return host.wait(lambda: host.frames if len(host.frames) >= count else None)


# framing


@pytest.mark.parametrize("framing", ["packets", "lines"])
def test_whatever_is_no_request_is_refused_and_the_stream_stays_in_step(
    spawn: Spawn, loop: str, framing: str
) -> None:
    host = spawn("--loop", loop, framing=framing)
    bodies = [b"{}", b"[]", b"42", b"null", b'"x"', b"{", b"\xff", b'{"id":5}', b"[" * 50_000]
    if framing == "packets":
        host.raw(b"".join(len(b).to_bytes(8, "big") + b for b in [*bodies, b""]))
        count = len(bodies) + 1
    else:
        # The first byte decides; blank lines and line ends of any kind are no packets.
        host.raw(b"\xef\xbb\xbf" + b"\r\n\n  \n".join([*bodies, b""]))
        count = len(bodies)
    request = host.call("status")
    refusals = host.frames[:-1]
    assert request["ok"] is True
    assert len(refusals) == count
    assert {(r["ok"], r["code"]) for r in refusals} == {(False, "invalid_request")}
    assert [r["id"] for r in refusals if r["id"] is not None] == [5]
    host.shutdown()


@pytest.mark.parametrize("framing", ["packets", "lines"])
def test_a_thousand_random_unicode_frames_cut_anywhere(
    spawn: Spawn, loop: str, framing: str
) -> None:
    host = spawn("--loop", loop, framing=framing)
    random.seed(89)
    alphabet = 'aé北🎉\u2028\u2029\x85\x7f"\\ '
    requests = [
        {"id": "".join(random.choices(alphabet, k=8)) + str(n), "operation": "status"}
        for n in range(1000)
    ]
    stream = b"".join(host.frame(request) for request in requests)
    start = 0
    while start < len(stream):
        end = start + random.randrange(1, 3000)
        host.raw(stream[start:end])
        start = end
    frames = answers(host, 1000)
    assert [frame["id"] for frame in frames] == [request["id"] for request in requests]
    host.shutdown()


def test_the_framing_is_fixed_by_the_first_byte(spawn: Spawn) -> None:
    host = spawn(framing="lines")
    assert host.call("status")["ok"] is True
    host.raw(packet({"id": 1, **STATUS}) + b"\n")
    assert host.wait(lambda: host.frames[1:])[0]["code"] == "invalid_request"
    assert host.call("status")["ok"] is True
    host.shutdown()


@pytest.mark.parametrize("size", [(128 << 20) + 1, 200 << 20, (1 << 56) - 1])
def test_a_prefix_over_the_ceiling_is_refused_and_ends_the_daemon(
    spawn: Spawn, loop: str, size: int
) -> None:
    host = spawn("--loop", loop)
    assert host.reply(scripted(), "say hi") == "hi"
    before = resource_use(host.pid)
    host.raw(size.to_bytes(8, "big") + b"x" * 1000)
    refusal = host.wait(lambda: host.frames[1:])[0]
    assert (refusal["id"], refusal["code"]) == (None, "invalid_request")
    assert str(size) in refusal["error"]
    assert host.exit_code(SOON) == 0
    host.check()
    assert before < 200 << 20


def resource_use(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def test_a_packet_of_ten_mebibytes_comes_through_both_ways(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    text = "é" * (5 << 20)
    assert host.reply(scripted(), "say " + text) == text
    host.shutdown()


@pytest.mark.parametrize("ident", [True, [], {}, 1.5, -1, "x", "", 2**70, "\u2028"])
def test_an_id_comes_back_as_it_went_or_is_refused(spawn: Spawn, ident: Any) -> None:
    host = spawn()
    host.raw(host.frame({"id": ident, **STATUS}))
    (answer,) = answers(host, 1)
    if isinstance(ident, bool | list | dict):
        assert (answer["id"], answer["code"]) == (None, "invalid_request")
    else:
        assert (answer["id"], answer["ok"]) == (ident, True)
        assert type(answer["id"]) is type(ident)
    host.shutdown()


def test_an_id_in_flight_is_refused_and_free_again_afterwards(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    gate = host.log.path.parent / "go"
    config = {"command": scripted(), "user_contents": [f"wait {gate}\nsay done"]}
    host.raw(host.frame({"id": "same", "operation": "prompt", "config": config}))
    assert wait_until(lambda: host.log.messages("session/prompt"))
    host.raw(host.frame({"id": "same", **STATUS}))
    assert answers(host, 1)[0]["code"] == "invalid_request"
    gate.touch()
    assert answers(host, 2)[1]["result"]["reply"] == "done"
    host.raw(host.frame({"id": "same", **STATUS}))
    assert answers(host, 3)[2]["ok"] is True
    host.shutdown()


def test_line_ends_that_node_would_cut_at_are_escaped_both_ways(spawn: Spawn) -> None:
    host = spawn(framing="lines")
    host.hello("update")
    text = "a\u2028b\u2029c\x85d"
    assert host.reply(scripted(), f"say {text}") == text
    assert host.text_event(text)["update"]["content"]["text"] == text
    read = [r for r in host.log.records() if r.get("in", {}).get("method") == "session/prompt"]
    assert read[0]["separators"] is False
    host.shutdown()


# the end


def test_the_first_cause_of_the_end_counts_and_a_signal_at_any_time() -> None:
    ending = Ending()
    ending.set(0)
    ending.set(1)
    assert (ending.code, ending.signalled) == (0, False)
    ending.interrupt(143)
    ending.set(1)
    assert (ending.code, ending.signalled) == (143, True)


@pytest.mark.parametrize("rest", [b"", b"\0\0\0", packet({"id": 1, **STATUS})[:-1]])
def test_the_end_of_input_anywhere_is_orderly(spawn: Spawn, loop: str, rest: bytes) -> None:
    host = spawn("--loop", loop)
    assert host.reply(scripted("spawn=1"), "say hi") == "hi"
    host.raw(rest)
    host.close_stdin()
    assert host.exit_code(SOON) == 0
    host.check()
    assert len(host.frames) == 1


def test_a_last_line_without_its_end_is_a_request(spawn: Spawn) -> None:
    host = spawn(framing="lines")
    host.raw(line({"id": 1, **STATUS})[:-1])
    host.close_stdin()
    assert host.exit_code(SOON) == 0
    host.check()
    assert host.frames[0]["ok"] is True


MOMENTS = [
    ("asyncio", "turn", signal.SIGTERM),
    ("uvloop", "turn", signal.SIGTERM),
    ("trio", "turn", signal.SIGTERM),
    ("asyncio", "idle", signal.SIGINT),
    ("uvloop", "opening", signal.SIGINT),
    ("trio", "opening", signal.SIGTERM),
    ("asyncio", "shutdown", signal.SIGTERM),
    ("trio", "shutdown", signal.SIGINT),
    ("uvloop", "close", signal.SIGTERM),
    ("trio", "close", signal.SIGTERM),
]


@pytest.mark.parametrize(("loop", "when", "number"), MOMENTS)
def test_a_signal_at_any_moment_ends_everything_soon(
    spawn: Spawn, loop: str, when: str, number: int
) -> None:
    host = spawn("--loop", loop)
    config = {"command": DEAF, "close_grace": 60}
    pending: list[int | None] = []
    if when == "opening":
        silent = [*DEAF, "new=silent"]
        pending.append(host.start(silent, "say never"))
        assert wait_until(lambda: host.log.messages("session/new"))
    elif when == "idle":
        assert host.call("status")["ok"] is True
    else:
        assert host.call("open", config=config)["ok"] is True
        pending.append(host.start(None, "say up\nhang"))
        assert wait_until(lambda: host.log.messages("session/prompt"))
        if when != "turn":
            pending.append(host.send(when))
            assert wait_until(lambda: host.log.messages("session/cancel"))
    host.signal(number)
    assert host.exit_code(5) == 128 + number
    host.check()
    for request in pending:
        found = [f for f in host.frames if f.get("id") == request]
        assert len(found) == 1, (request, host.story())


def test_a_second_signal_skips_what_graces_are_left(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.call("open", config={"command": [*DEAF, "close=silent"], "close_grace": 60})
    request = host.send("shutdown")
    assert wait_until(lambda: host.log.messages("session/close"))
    host.signal(signal.SIGTERM)
    host.signal(signal.SIGTERM)
    assert host.exit_code(3) == 143
    host.check()
    assert host.answer(request)["ok"] is True


def test_the_group_s_sudden_death_leaves_nothing(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.start(DEAF, "say up\nhang")
    assert wait_until(lambda: host.log.messages("session/prompt"))
    os.killpg(host.pid, signal.SIGKILL)
    assert host.survivors(4) == []


def test_a_host_that_stops_reading_and_leaves_does_not_keep_it(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.hello("update")
    host.call("open", config={"command": scripted(), "close_grace": 0.5})
    host.pause()
    host.start(None, "flood 100000 500\nhang")
    assert wait_until(lambda: host.log.messages("session/prompt"))
    host.close_stdin()
    assert host.exit_code(9) == 0
    assert host.survivors(2) == []


HOLDER = """
import os, subprocess, sys, time
daemon = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
daemon.stdin.write(bytes.fromhex(sys.argv[1]))
daemon.stdin.flush()
daemon.stdout.close()
sys.exit(daemon.wait())
"""


def test_a_host_that_closes_stdout_ends_an_idle_daemon(loop: str) -> None:
    request = packet({"id": 1, **STATUS}).hex()
    command = [sys.executable, "-c", HOLDER, request, *DAEMON, "stream", "--loop", loop]
    assert subprocess.run(command, timeout=30, check=False).returncode == 0


@pytest.mark.parametrize("target", ["/dev/null", "/dev/full"])
def test_a_stdout_that_takes_nothing_does_not_disturb(tmp_path: Path, target: str) -> None:
    requests = packet({"id": 1, **STATUS}) * 50
    with open(target, "wb") as stdout:
        done = subprocess.run(
            [*DAEMON, "stream"],
            input=requests,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=30,
            check=False,
            cwd=tmp_path,
        )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def test_files_serve_as_stdin_and_stdout(tmp_path: Path) -> None:
    requests, out = tmp_path / "in", tmp_path / "out"
    config = {"command": scripted(), "user_contents": ["say hi"]}
    lines = [{"id": 1, "operation": "prompt", "config": config}, {"id": 2, **STATUS}]
    requests.write_bytes(b"".join(map(line, lines)))
    with requests.open("rb") as stdin, out.open("wb") as stdout:
        done = subprocess.run(
            [*DAEMON, "stream"],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=30,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")
    found = [json.loads(text) for text in out.read_text().splitlines()]
    assert {frame["id"] for frame in found} == {1, 2}


NOISY = """
import atexit, os, sys
print("printed at the start")
os.write(1, b"")
def late():
    print("printed at the end")
    os.write(1, b"to the descriptor")
atexit.register(late)
import bridge.session.session as s
begin = s.Session._begin
def noisy(*arguments):
    print("printed in a turn", flush=True)
    os.write(1, b"to the descriptor in a turn\\n")
    os.system("echo from a child")
    return begin(*arguments)
s.Session._begin = noisy
"""


def test_nothing_but_packets_is_on_stdout_whatever_a_library_prints(
    spawn: Spawn, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "noisy.py").write_text(NOISY.replace('print("printed at the start")\n', ""))
    program = "import noisy; from bridge.__main__ import program; program()"
    host = spawn(command=[sys.executable, "-c", program], environment={"PYTHONPATH": str(site)})
    assert host.reply(scripted(), "say hi") == "hi"
    host.shutdown()
    said = host.stderr()
    for words in ("printed in a turn", "descriptor in a turn", "from a child", "at the end"):
        assert words in said


def test_an_agent_cannot_write_to_the_host(spawn: Spawn) -> None:
    host = spawn()
    script = "echo junk; echo '{}'; for n in 0 1 2; do echo junk >/proc/$PPID/fd/$n; done; exec cat"
    response = host.prompt(["sh", "-c", script + " >/dev/null"], "x", start_timeout=1)
    assert (response["ok"], response["code"]) == (False, "timeout")
    host.shutdown()


def test_descriptors_do_not_leak_from_turn_to_turn(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)

    def round_() -> int:
        host.call("open", session="x", config={"command": scripted("spawn=1")})
        host.answer(host.start(None, "say x", session="x"))
        host.call("close", session="x")
        return len(list(Path(f"/proc/{host.pid}/fd").iterdir()))

    counts = [round_() for _ in range(6)]
    assert counts[-1] <= counts[1]
    host.shutdown()


def test_an_agent_inherits_none_of_the_daemon_s_descriptors(spawn: Spawn) -> None:
    host = spawn()
    pid = int(host.reply(scripted(), "pid"))
    assert alive(pid)
    assert sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2"]
    host.shutdown()


def test_what_the_settings_keep_secret_is_masked_in_the_recording(
    spawn: Spawn, tmp_path: Path, loop: str
) -> None:
    settings, trace = tmp_path / "settings.json", tmp_path / "run.trace"
    env = {"SOME_TOKEN": "CANARY-in-the-file"}
    settings.write_text(json.dumps({"defaults": {"env": env}, "record": str(trace)}))
    url = "http://user:CANARY-in-the-url@127.0.0.1:1/v1"
    host = spawn("--loop", loop, "--config", str(settings), "--intercept", url)
    assert host.reply(scripted(), "say CANARY-in-the-file") == "CANARY-in-the-file"
    host.shutdown()
    recorded = trace.read_text()
    assert "say [secret SOME_TOKEN]" in recorded
    assert "CANARY" not in recorded
