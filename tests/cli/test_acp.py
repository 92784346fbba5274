"""`acp`: a relay in an agent's place, for clients of other makers; and what it records."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.trace.reader import Event, read
from tests.peers.agent import scripted
from tests.peers.host import Host

BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))


def events(file: Path, ch: str, direction: str) -> list[bytes]:
    found = [item for item in read(str(file)) if isinstance(item, Event)]
    return [e.content or b"" for e in found if (e.ch, e.dir) == (ch, direction)]


def run(*arguments: str, data: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([BRIDGE, "acp", *arguments], input=data, capture_output=True, timeout=60)


def test_a_command_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    ended = run("--", str(tmp_path / "no-agent"))
    assert ended.returncode == 1
    assert b"no-agent" in ended.stderr
    assert b"Traceback" not in ended.stderr
    assert ended.stdout == b""


def test_without_a_command_it_says_how_to_give_one() -> None:
    ended = run()
    assert ended.returncode == 2
    assert b"-- CMD" in ended.stderr


def test_options_after_the_dashes_are_the_agent_s() -> None:
    script = "import sys; print(sys.argv[1:])"
    ended = run("--", sys.executable, "-c", script, "--record", "x", "--", "-h")
    assert ended.stdout == b"['--record', 'x', '--', '-h']\n"


def test_both_directions_stderr_and_the_process_are_recorded(tmp_path: Path) -> None:
    file = tmp_path / "run.trace.ndjson"
    line = b'{"jsonrpc":"2.0", "id":1,"method":"initialize","params":{}}'
    ended = run("--record", str(file), "--", *scripted("stderr=40"), data=line + b"\nnoise\n")
    assert ended.returncode == 0
    assert events(file, "acp", "out") == [line, b"noise"]
    assert events(file, "acp", "in") == [ended.stdout.rstrip(b"\n")]
    assert b"".join(events(file, "stderr", "in")) == ended.stderr.replace(b"\n", b"")
    found = [item for item in read(str(file)) if isinstance(item, Event)]
    process = [(item.kind, item.data) for item in found if item.ch == "process"]
    assert [kind for kind, _ in process] == ["start", "eof", "exit"]
    assert process[0][1]["argv"] == scripted("stderr=40")
    assert process[2][1] == {"exit_code": 0, "signal": None, "eof": True}


def test_an_agent_that_ends_before_its_client_leaves_is_recorded_so(tmp_path: Path) -> None:
    file = tmp_path / "run.trace.ndjson"
    command = [BRIDGE, "acp", "--record", str(file), "--", "sh", "-c", "exit 7"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.read() == b""
        assert client.wait(20) == 7
    found = [item for item in read(str(file)) if isinstance(item, Event)]
    process = [(item.kind, item.data) for item in found if item.ch == "process"]
    assert [kind for kind, _ in process] == ["start", "exit"]
    assert process[1][1] == {"exit_code": 7, "signal": None, "eof": False}


def test_no_canary_is_recorded_though_the_agent_gets_it(tmp_path: Path) -> None:
    file = tmp_path / "run.trace.ndjson"
    header = {"name": "X-Tok", "value": "CANARY-3"}
    server = {"type": "http", "name": "t", "url": "http://127.0.0.1:1/", "headers": [header]}
    new = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"mcpServers": [server]}}
    ended = run("--record", str(file), "--", "cat", data=json.dumps(new).encode() + b"\n")
    assert b"CANARY-3" in ended.stdout
    text = file.read_bytes()
    assert text.count(b"[secret X-Tok]") == 2
    assert b"CANARY" not in text


def test_no_canary_is_recorded_of_the_agent_s_command_line(tmp_path: Path) -> None:
    file = tmp_path / "run.trace.ndjson"
    ended = run("--record", str(file), "--", "echo", "--api-key", "CANARY-1", "--token=CANARY-2")
    assert ended.stdout == b"--api-key CANARY-1 --token=CANARY-2\n"
    assert b"CANARY" not in file.read_bytes()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_a_daemon_does_not_notice_a_relay_before_its_agent(tmp_path: Path, loop: str) -> None:
    prompt = 'say one\ntool t1 completed\npermission [{"optionId":"a","kind":"allow_once"}]\nsay é'
    answers = []
    for relayed in ([], [BRIDGE, "acp", "--loop", loop, "--"]):
        with Host(tmp_path) as host:
            answers.append(host.prompt([*relayed, *scripted()], prompt))
            host.shutdown()
    assert answers[0]["ok"] is True
    assert answers[0] == answers[1]
