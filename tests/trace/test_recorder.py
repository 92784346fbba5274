"""The recorder in the real daemon: everything is written down, secrets are not, nothing stalls."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.trace.reader import Damage, Event, read
from bridge.trace.recorder import Recorder
from protocol_schemas.trace import Head
from tests.conftest import Spawn
from tests.peers.agent import scripted
from tests.peers.host import DAEMON, Host
from tests.peers.processes import wait_until
from tests.peers.servers import mcp_server


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.trace.ndjson"


def events(file: Path, ch: str | None = None, direction: str | None = None) -> list[Event]:
    """The file's events; fails if any line of it cannot be read."""
    items = list(read(str(file)))
    assert isinstance(items[0], Head)
    assert not [item for item in items if isinstance(item, Damage)]
    found = [item for item in items if isinstance(item, Event)]
    assert [event.t for event in found] == sorted(event.t for event in found)
    return [e for e in found if ch in (None, e.ch) and direction in (None, e.dir)]


def contents(found: list[Event]) -> list[bytes]:
    return [event.content or b"" for event in found]


def reason(file: Path) -> str:
    last = events(file)[-1]
    assert (last.ch, last.kind) == ("trace", "end")
    return last.data["reason"]


def test_everything_is_written_down_on_one_clock(spawn: Spawn, file: Path, loop: str) -> None:
    host = spawn("--record", str(file), "--loop", loop)
    agent = scripted(f"start={b'banner'.hex()}0a")
    raw = '{"jsonrpc":"2.0", "method":"_acme/x","params":{"b":1.0,"a":"\\u00e9é"} }'
    assert host.reply(agent, f"stderr 100\nraw {raw}\nsay two") == "two"
    host.shutdown()
    assert file.stat().st_mode & 0o777 == 0o600
    acp = contents(events(file, "acp", "in"))
    assert acp[0] == b"banner"
    assert raw.encode() in acp
    sent = [json.loads(content).get("method") for content in contents(events(file, "acp", "out"))]
    assert sent == ["initialize", "session/new", "session/prompt", "session/close"]
    assert b"".join(contents(events(file, "stderr"))).count(b"e") == 50
    host_in, host_out = events(file, "host", "in"), events(file, "host", "out")
    assert [json.loads(content)["operation"] for content in contents(host_in)] == [
        "prompt", "shutdown",
    ]  # fmt: skip
    assert len(host_out) == 2
    assert [event.kind for event in events(file, "process")] == ["start", "exit"]
    assert reason(file) == "closed"


def test_no_canary_is_in_the_file(spawn: Spawn, file: Path) -> None:
    canaries = {"OPENAI_API_KEY": "sk-CANARY-1", "SOME_AUTHORIZATION": "Bearer CANARY-2"}
    settings: dict[str, Any] = {
        "mcp_headers": {"t": {"X-Tok": "CANARY-3/ü"}},
        "mcp_urls": {"t": "http://127.0.0.1:1/mcp?token=CANARY-5"},
        "tool_interception": {"url": "http://127.0.0.1:1/gate", "secret": "CANARY-6"},
        "env": {"MY_TOKEN": "CANARY-7"},
    }
    host = spawn("--record", str(file), "--log-level", "debug", environment=canaries)
    permission = json.dumps([{"optionId": "a", "kind": "allow_once", "name": "A"}])
    prompt = f"env OPENAI_API_KEY SOME_AUTHORIZATION MY_TOKEN\npermission {permission}\ndump"
    reply = host.reply(scripted(), prompt, **settings)
    assert "CANARY-1" in reply
    assert "CANARY-2" in reply
    assert "CANARY-7" in reply
    failed = host.prompt(scripted("new=error:-32603:no key sk-CANARY-1"), "hi", **settings)
    assert failed["ok"] is False
    host.shutdown()
    text = file.read_bytes()
    assert text.count(b"[secret ") > 10
    assert b"CANARY" not in text
    assert "CANARY" not in host.stderr()


def test_a_call_to_an_mcp_server_has_its_http_heads_without_secrets(
    spawn: Spawn, file: Path, tmp_path: Path
) -> None:
    with mcp_server(tmp_path / "mcp.log") as tools:
        host = spawn("--record", str(file))
        host.hello()
        headers = {"tiny": {"X-Tok": "CANARY-3", "Authorization": "Basic OkNBTkFSWS00LWxvbmc="}}
        config = {"mcp_urls": {"tiny": tools.url}, "mcp_headers": headers}
        answer = host.call("call_tool", name="tiny_echo", arguments={"message": "é"}, config=config)
        assert answer["ok"] is True, answer
        host.shutdown()
    found = [event for event in events(file, "mcp") if event.kind == "http"]
    [call] = [
        event.content for event in events(file, "mcp", "out") if b'"tools/call"' in event.content
    ]
    [http] = [event.data for event in found if event.data["rpc"] == json.loads(call)["id"]]
    assert (http["server"], http["method"], http["url"]) == ("tiny", "POST", tools.url)
    assert http["status"] == 200
    assert ["X-Tok", "[secret tiny.X-Tok]"] in http["headers"]
    assert "content-type" in {name.lower() for name, _ in http["response_headers"]}
    text = file.read_bytes()
    assert b"CANARY" not in text
    assert b"Q0FOQVJZLTQ" not in text
    assert b"NBTkFSWS00LWxvbm" not in text


def test_secrets_are_kept_where_that_is_asked_for(spawn: Spawn, file: Path) -> None:
    host = spawn("--record", str(file), "--record-secrets", environment={"A_TOKEN": "CANARY-1"})
    host.reply(scripted(), "env A_TOKEN")
    host.shutdown()
    assert b"CANARY-1" in file.read_bytes()
    head = next(read(str(file)))
    assert isinstance(head, Head)
    assert head.secrets == "kept"


def test_a_killed_daemon_leaves_a_whole_file(spawn: Spawn, file: Path, loop: str) -> None:
    host = spawn("--record", str(file), "--loop", loop)
    host.hello()
    host.start(scripted(), "say before\nhang")
    host.text_event("before")
    assert wait_until(lambda: b'"event":"update"' in file.read_bytes())
    os.killpg(host.pid, signal.SIGKILL)
    assert host.survivors() == []
    assert b"before" in b"".join(contents(events(file, "acp", "in")))
    assert reason(file) == "the bridge ended without closing the recording"


def test_a_full_disk_ends_the_recording_with_one_line_and_nothing_else(
    spawn: Spawn, loop: str
) -> None:
    host = spawn("--record", "/dev/full", "--loop", loop)
    assert host.reply(scripted(), "say one") == "one"
    assert host.reply(scripted(), "flood 3000 100\nsay x").endswith("x")
    assert host.reply(scripted(), "say two") == "two"
    host.shutdown()
    told = [line for line in host.stderr().splitlines() if "recording" in line]
    assert len(told) == 1
    assert "/dev/full" in told[0]
    assert "No space left on device" in told[0]


def test_a_disk_that_takes_nothing_holds_up_nobody(spawn: Spawn, tmp_path: Path, loop: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    stuck = os.open(pipe, os.O_RDWR)
    try:
        host = spawn("--record", str(pipe), "--loop", loop)
        for _ in range(3):
            assert host.reply(scripted(), "flood 30000 200\nsay x").endswith("x")
        host.shutdown()
        told = [line for line in host.stderr().splitlines() if "recording" in line]
        assert len(told) == 1
        assert "did not take the last of it" in told[0]
    finally:
        os.close(stuck)


def test_a_file_that_cannot_be_written_is_a_usage_error(spawn: Spawn, tmp_path: Path) -> None:
    host = spawn("--record", str(tmp_path / "no" / "file"))
    assert host.exit_code() == 2
    assert "make the directory" in host.stderr()


def test_daemons_that_record_into_a_directory_keep_apart(spawn: Spawn, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    hosts = [spawn(environment={"BRIDGE_RECORD": str(folder)}) for _ in range(3)]
    for number, host in enumerate(hosts):
        assert host.reply(scripted(), f"say {number}") == str(number)
    for host in hosts:
        host.shutdown()
    assert sorted(reason(path) for path in folder.iterdir()) == ["closed"] * 3


def test_once_is_recorded_too(tmp_path: Path, file: Path) -> None:
    config = tmp_path / "config.json"
    message = {"role": "user", "content": "env A_TOKEN\nsay hello"}
    request = {"command": scripted(), "messages": [message], "env": {"A_TOKEN": "CANARY-1"}}
    config.write_text(json.dumps(request))
    host = Host(tmp_path, command=[DAEMON[0], "once", str(config), "--record", str(file)])
    with host:
        assert host.exit_code() == 0
        assert host.survivors() == []
    assert b"CANARY" not in file.read_bytes()
    [request, response] = [json.loads(content) for content in contents(events(file, "host"))]
    assert request["operation"] == "prompt"
    assert response["ok"] is True


def test_a_line_of_megabytes_is_whole_and_the_daemon_does_not_keep_it(
    spawn: Spawn, file: Path
) -> None:
    host = spawn("--record", str(file))
    size = 20 << 20
    assert len(host.reply(scripted(), f"flood 1 {size}")) == size
    host.shutdown()
    assert max(map(len, contents(events(file, "acp", "in")))) > size


def test_events_of_any_kind_are_written_as_they_were_when_they_were_told(tmp_path: Path) -> None:
    path = tmp_path / "run.trace.ndjson"
    with Recorder.open(str(path), environment={}) as recorder:
        data: dict[str, Any] = {"a": 1, "surrogate": "\ud83d", "large": 1 << 70}
        buffer = bytearray(b"first")
        recorder.record("bridge", "odd", data, content=buffer)
        data["a"], buffer[:] = 2, b"later"
        recorder.record("bridge", "unwritable", {"a": object})
        nested: list[Any] = []
        for _ in range(2000):
            nested = [nested]
        recorder.record("bridge", "deep", {"a": nested})
        recorder.record("model", "request", {"headers": [(b"A", b"\xff")]})
        recorder.record("bridge", "plain", {"b": [None, True, 0.5]}, session="s", n=7)
        recorder.secret("K", "CANARY-1")
        recorder.record("bridge", "after", {"x": "CANARY-1"}, direction="in")
        recorder.tap("acp")("in", b'{"z":1}\n' * 5000)
    odd, unwritable, deep, head, plain, after, *lines = [e for e in events(path) if e.ch != "trace"]
    assert odd.data == {"a": 1, "surrogate": "\ud83d", "large": 1 << 70}
    assert odd.content == b"first"
    assert unwritable.data == {"unwritable": "{'a': <class 'object'>}"}
    assert deep.data == {"unwritable": "{'a': [[[[[[...]]]]]]}"}
    assert head.data == {"headers": [["A", "\xff"]]}
    assert (plain.data, plain.session, plain.n) == ({"b": [None, True, 0.5]}, "s", 7)
    assert (after.data, after.dir) == ({"x": "[secret K]"}, "in")
    assert [line.content for line in lines] == [b'{"z":1}'] * 5000


def test_a_daemon_that_does_not_record_loads_no_recorder() -> None:
    code = "import sys\nfrom bridge import app, once\nprint(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "bridge.session.daemon" in loaded.stdout
    assert "bridge.trace" not in loaded.stdout
