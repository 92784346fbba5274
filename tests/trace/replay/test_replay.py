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
TRANSCRIPTS = Path(__file__).parents[1] / "check" / "transcripts"
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


@pytest.mark.parametrize("name", ["claude.acp", "gemini.acp-resume", "kimi.acp"])
def test_a_recorded_agent_and_its_recorded_client_play_it_all_again(name: str) -> None:
    trace = str(TRANSCRIPTS / f"{name}.ndjson")
    command = [BRIDGE, "trace", "replay", "--as", "client", trace, "--"]
    ended = subprocess.run(
        [*command, BRIDGE, "trace", "replay", trace], capture_output=True, timeout=120
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    said = [content or b"" for content, _ in lines(Path(trace), "in")]
    assert ended.stdout == b"".join(line + b"\n" for line in said)


def test_an_agent_that_does_not_answer_is_told(tmp_path: Path) -> None:
    trace = Script().opened().prompt(2).say("x").stopped(2).file(tmp_path)
    command = [BRIDGE, "trace", "replay", "--as", "client", "--timeout", "0.5", trace, "--"]
    ended = subprocess.run([*command, *scripted("new=silent")], capture_output=True, timeout=60)
    assert ended.returncode == 1
    assert b"did not come within 0.5 s" in ended.stderr


def as_client(trace: str, agent: str, *options: str) -> "subprocess.CompletedProcess[bytes]":
    command = [BRIDGE, "trace", "replay", "--as", "client", *options, trace, "--"]
    return subprocess.run([*command, sys.executable, "-c", agent], capture_output=True, timeout=60)


CURIOUS = """
import json, sys
for line in sys.stdin:
    print(line, end="", file=sys.stderr)
    message = json.loads(line)
    if message.get("method") == "session/prompt":
        asked = message["id"]
        print('{"jsonrpc":"2.0","id":90,"method":"fs/read_text_file","params":{}}', flush=True)
        continue
    ident = asked if "error" in message else message["id"]
    answer = {"jsonrpc": "2.0", "id": ident, "result": {"sessionId": "text"}}
    print(json.dumps(answer), flush=True)
"""


def test_what_the_recorded_client_was_never_asked_is_refused(tmp_path: Path) -> None:
    ended = as_client(Script().opened().prompt(2).stopped(2).file(tmp_path), CURIOUS)
    assert ended.returncode == 0, ended.stderr
    assert b"no answer to this fs/read_text_file" in ended.stderr


def test_the_session_s_id_is_replaced_where_it_is_one(tmp_path: Path) -> None:
    script = Script().opened(session="prompt")
    script.prompt(2, 'the "prompt" is prompt', session="prompt").stopped(2)
    ended = as_client(script.file(tmp_path), CURIOUS)
    said = [json.loads(line) for line in ended.stderr.splitlines()]
    [params] = [one["params"] for one in said if one.get("method") == "session/prompt"]
    assert params["sessionId"] == "text"
    assert params["prompt"] == [{"type": "text", "text": 'the "prompt" is prompt'}]


def test_of_two_agents_with_the_same_ids_the_wanted_one_s_session_counts(tmp_path: Path) -> None:
    script = Script()
    for n, name in ((1, "a"), (2, "b")):
        new = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {}}
        script.add("acp", "out", n=n, session=name, msg=new)
        answer = {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": name}}
        script.add("acp", "in", n=n, session=name, msg=answer)
        close = {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "session/close",
            "params": {"sessionId": name},
        }
        script.add("acp", "out", n=n, session=name, msg=close)
    for n in ("1", "2"):
        ended = as_client(script.file(tmp_path), CURIOUS, "--n", n)
        assert b'"params": {"sessionId": "text"}' in ended.stderr, n


def test_of_two_recordings_in_a_file_one_is_played(tmp_path: Path) -> None:
    trace = Path(Script().opened().prompt(2).say("x").stopped(2).file(tmp_path))
    trace.write_bytes(trace.read_bytes() * 2)
    ended = as_client(str(trace), CURIOUS)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count(b"session/prompt") == 1


def test_options_that_go_with_another_role_are_refused(tmp_path: Path) -> None:
    trace = Script().opened().file(tmp_path)
    for options, words in (
        (["--as", "client", trace], "-- CMD"),
        ([trace, "--", "agent"], "starts no agent"),
        (["--as", "model", "--n", "1", trace], "--n chooses an agent"),
        (["--as", "client", "--timeout", "0", trace, "--", "agent"], "--timeout 0"),
        (["--as", "client", "--timeout", "nan", trace, "--", "agent"], "--timeout nan"),
        (["-"], "as a file"),
    ):
        command = [BRIDGE, "trace", "replay", *options]
        ended = subprocess.run(command, input="", capture_output=True, text=True, timeout=60)
        assert (ended.returncode, words in ended.stderr) == (2, True), ended.stderr


def test_a_trace_without_an_agent_cannot_be_played(tmp_path: Path) -> None:
    trace = Script().add("stderr", "in", n=5, text="x").file(tmp_path)
    for more in (["--n", "7"], ["--as", "client"]):
        ended = subprocess.run([BRIDGE, "trace", "replay", trace, *more], capture_output=True)
        assert ended.returncode == 2
        assert len(ended.stderr.splitlines()) == 1
