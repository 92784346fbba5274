"""A recording played again does what it did: for hosts as an agent, for agents as a client."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.trace.reader import Event, read
from tests.peers.agent import scripted
from tests.peers.host import Host
from tests.trace.traces import Script

BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
OPTIONS = json.dumps([{"optionId": "a", "kind": "allow_once", "name": "A"}])
FAILURES = {
    "exit in mid-turn": ["say part\nstderr 300\nexit 3"],
    "killed": ["say part\nkill"],
    "half a line, then the end": ["say part\nhalf"],
    "an error": ['say part\nerror {"code":-32603,"message":"boom","data":{"details":"why"}}'],
    "noise and a bad answer": ['raw not json\nraw 42\nsay x\nresult {"stopReason":"odd"}'],
    "a permission, then death": [f"permission {OPTIONS}\nsay on\nexit 7"],
    "two turns, the second fails": ["say one\ntool t completed", "say two\nexit 9"],
    "late text": ["late after the end"],
    "a clean run": ["say a\nid m1 b\nthink c", "flood 50 20\nsay é\u2028"],
}


def drive(folder: Path, agent: list[str], prompts: list[str], *options: str) -> list[Any]:
    """What the host gets, prompt by prompt, and the daemon's events."""
    folder.mkdir(exist_ok=True)
    with Host(folder, *options) as host:
        host.hello()
        answers = [host.prompt(agent, prompt) for prompt in prompts]
        events = [
            {key: value for key, value in frame.items() if key != "seq"}
            for name in ("update", "permission", "exit")
            for frame in host.events(name)
        ]
        host.call("shutdown")
        host.close_stdin()
        host.exit_code()
    return [answers, events]


def lines(file: Path, direction: str) -> list[tuple[bytes | None, str]]:
    found = [item for item in read(str(file)) if isinstance(item, Event)]
    return [(e.content, e.end) for e in found if (e.ch, e.dir) == ("acp", direction)]


@pytest.mark.parametrize("name", FAILURES)
def test_a_recorded_run_replayed_as_an_agent_is_the_same_bit_for_bit(
    name: str, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.ndjson", tmp_path / "second.ndjson"
    prompts = FAILURES[name]
    once = drive(tmp_path / "a", scripted(), prompts, "--record", str(first))
    replay = [BRIDGE, "trace", "replay", str(first)]
    again = drive(tmp_path / "b", replay, prompts, "--record", str(second))
    assert again == once
    assert lines(second, "in") == lines(first, "in")
    said = [json.loads(content or b"{}").get("method") for content, _ in lines(second, "out")]
    assert said == [
        json.loads(content or b"{}").get("method") for content, _ in lines(first, "out")
    ]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_another_client_s_ids_are_answered_by_their_own(tmp_path: Path, loop: str) -> None:
    trace = Script().opened().prompt(2).say("x").stopped(2).file(tmp_path)
    requests = [
        {"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "id": "b", "method": "session/new", "params": {}},
        {"jsonrpc": "2.0", "id": "c", "method": "session/prompt", "params": {}},
        {"jsonrpc": "2.0", "id": "d", "method": "session/fork", "params": {}},
    ]
    data = "".join(json.dumps(request) + "\n" for request in requests)
    command = [BRIDGE, "trace", "replay", "--loop", loop, trace]
    ended = subprocess.run(command, input=data, capture_output=True, text=True, timeout=60)
    messages = [json.loads(line) for line in ended.stdout.splitlines()]
    assert {message["id"] for message in messages if "id" in message} == {"a", "b", "c", "d"}
    [refused] = [message for message in messages if "error" in message]
    assert refused["id"] == "d"
    assert "no answer to this session/fork" in refused["error"]["message"]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_a_recorded_client_asks_another_agent_the_same(tmp_path: Path, loop: str) -> None:
    first, second = tmp_path / "first.ndjson", tmp_path / "second.ndjson"
    prompt = f"say one\npermission {OPTIONS}\nsay two"
    drive(
        tmp_path / "a", scripted("session=recorded"), [prompt, "say three"], "--record", str(first)
    )
    relay = [BRIDGE, "acp", "--record", str(second), "--", *scripted("session=living")]
    command = [
        BRIDGE,
        "trace",
        "replay",
        "--as",
        "client",
        "--loop",
        loop,
        str(first),
        "--",
        *relay,
    ]
    ended = subprocess.run(command, capture_output=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    asked = [content or b"" for content, _ in lines(second, "out")]
    recorded = [content or b"" for content, _ in lines(first, "out")]
    assert [line.replace(b"living", b"recorded") for line in asked] == recorded
    assert b"three" in ended.stdout
    assert b"one" in ended.stdout


def test_an_agent_that_does_not_answer_is_told(tmp_path: Path) -> None:
    trace = Script().opened().prompt(2).say("x").stopped(2).file(tmp_path)
    command = [BRIDGE, "trace", "replay", "--as", "client", "--timeout", "0.5", trace, "--"]
    ended = subprocess.run([*command, *scripted("new=silent")], capture_output=True, timeout=60)
    assert ended.returncode == 1
    assert b"did not come within 0.5 s" in ended.stderr


def test_a_trace_without_an_agent_cannot_be_played(tmp_path: Path) -> None:
    trace = Script().add("stderr", "in", n=5, text="x").file(tmp_path)
    for more in (["--n", "7"], ["--as", "client"]):
        ended = subprocess.run([BRIDGE, "trace", "replay", trace, *more], capture_output=True)
        assert ended.returncode == 2
        assert len(ended.stderr.splitlines()) == 1
