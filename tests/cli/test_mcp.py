"""`acp-mcp-bridge mcp` as a program: the ready line, stdio, signals, what is refused."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

Json = dict[str, Any]
COMMAND = [str(Path(sys.executable).with_name("acp-mcp-bridge")), "mcp"]
LINES = Path(__file__).parents[1] / "mcp" / "line_server.py"
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}


def servers_file(path: Path, **servers: Json) -> str:
    file = path / "servers.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return str(file)


def lines(path: Path, *modes: str) -> Json:
    """An entry for a stdio server."""
    return {
        "command": sys.executable,
        "args": ["-I", "-S", str(LINES), *modes],
        "env": {"CALLS": str(path / "calls")},
    }


@contextmanager
def running(*arguments: str, **more: Any) -> Generator[subprocess.Popen[bytes]]:
    pipes: Json = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([*COMMAND, *arguments], **{**pipes, **more})
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def request(ident: int, method: str, params: Json | None = None) -> bytes:
    message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params or {}}
    return json.dumps(message).encode() + b"\n"


def exchange(url: str, body: bytes, session: str = "") -> tuple[Json, str]:
    """One POST by curl's simplest kin: the answer and the session's id."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if session:
        headers["Mcp-Session-Id"] = session
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, body, headers), timeout=20) as response:
        return json.loads(response.read() or b"{}"), response.headers.get("Mcp-Session-Id", "")


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_over_http_the_ready_line_tells_where(tmp_path: Path, loop: str) -> None:
    file = servers_file(tmp_path, a=lines(tmp_path), **{"b c": lines(tmp_path)})
    with running("--servers", file, "--loop", loop) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["url"].startswith("http://127.0.0.1:")
        assert ready["servers"]["b c"] == ready["url"] + "/b%20c"
        opened, session = exchange(ready["url"], request(1, "initialize", INITIALIZE))
        assert opened["result"]["capabilities"]["tools"] == {"listChanged": True}
        listed, _ = exchange(ready["url"], request(2, "tools/list"), session)
        assert [tool["name"] for tool in listed["result"]["tools"]] == ["a_echo", "b c_echo"]
        called, _ = exchange(
            ready["url"],
            request(3, "tools/call", {"name": "a_echo", "arguments": {"x": 1}}),
            session,
        )
        assert called["result"]["content"][0]["text"] == '{"x": 1}'
        process.terminate()
        assert process.wait(5) == 143
        assert process.stdout.read() == b""


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it_and_its_servers_in_mid_call(
    tmp_path: Path, number: int, code: int
) -> None:
    file = servers_file(tmp_path, s=lines(tmp_path, "hang"))
    with running("--servers", file, "--stdio") as process:
        assert process.stdin is not None
        process.stdin.write(request(1, "initialize", INITIALIZE))
        process.stdin.write(request(2, "tools/call", {"name": "s_echo"}))
        process.stdin.flush()
        calls = tmp_path / "calls"
        until(calls.exists)
        mark = str(tmp_path)
        assert having(mark)
        process.send_signal(number)
        assert process.wait(10) == code
        until(lambda: not having(mark))


def test_stdin_is_left_alone_over_http(tmp_path: Path) -> None:
    file = servers_file(tmp_path, s=lines(tmp_path))
    with running("--servers", file, stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert exchange(ready["url"], request(1, "initialize", INITIALIZE))[0]["result"]


def test_on_stdio_stdout_is_mcp_and_nothing_else(tmp_path: Path) -> None:
    file = servers_file(tmp_path, s=lines(tmp_path, "noise"))
    text = (
        request(1, "initialize", INITIALIZE)
        + b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
        + request(2, "tools/list")
        + request(3, "tools/call", {"name": "s_echo", "arguments": {"x": "\u00e9"}})
        + b"not json\n"
    )
    done = subprocess.run(
        [*COMMAND, "--servers", file, "--stdio"], input=text, capture_output=True, timeout=30
    )
    assert done.returncode == 0, done.stderr
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    answers = {message.get("id"): message for message in messages if "method" not in message}
    assert answers[1]["result"]["serverInfo"]["name"] == "acp-mcp-bridge"
    assert [tool["name"] for tool in answers[2]["result"]["tools"]] == ["s_echo"]
    assert answers[3]["result"]["content"][0]["text"] == '{"x": "\\u00e9"}'
    assert answers[None]["error"]["code"] == -32700


def test_a_server_that_is_down_is_reported_and_the_others_are_there(tmp_path: Path) -> None:
    down = {"url": "http://127.0.0.1:9/mcp"}
    file = servers_file(tmp_path, up=lines(tmp_path), down=down)
    with running("--servers", file) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        ready = json.loads(process.stdout.readline())
        assert set(ready["servers"]) == {"up", "down"}
        process.terminate()
        process.wait(5)
        told = process.stderr.read().decode()
    assert "'down'" in told
    assert "cannot connect" in told


def test_two_tools_of_one_name_end_it_at_start(tmp_path: Path) -> None:
    servers = {"": lines(tmp_path, "as:x_echo"), "x": lines(tmp_path)}
    file = servers_file(tmp_path, **servers)
    done = subprocess.run([*COMMAND, "--servers", file], capture_output=True, timeout=30)
    assert done.returncode == 1
    assert done.stdout == b""
    assert b"'x_echo'" in done.stderr
    assert b"server ''" in done.stderr
    assert b"server 'x'" in done.stderr


def test_events_tell_each_attempt(tmp_path: Path) -> None:
    file = servers_file(tmp_path, s={**lines(tmp_path, "die-once"), "backoff": {"initial": 0}})
    text = request(1, "initialize", INITIALIZE) + request(2, "tools/call", {"name": "s_echo"})
    done = subprocess.run(
        [*COMMAND, "--servers", file, "--stdio", "--events"],
        input=text,
        capture_output=True,
        timeout=30,
    )
    events = [json.loads(line) for line in done.stderr.splitlines() if line.startswith(b"{")]
    assert [event["outcome"] for event in events] == ["lost", "answer"]


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        (None, [], "cannot read"),
        ("{", [], "is not JSON"),
        ("{}", [], "mcpServers"),
        ('{"mcpServers":{"s":{"url":"http://${NOPE_NOT_SET}/"}}}', [], "${NOPE_NOT_SET}"),
        ('{"mcpServers":{}}', ["--listen", "80"], "HOST:PORT"),
        ('{"mcpServers":{}}', ["--listen", "0.0.0.0:0"], "--allow-remote"),
        ('{"mcpServers":{}}', ["--listen", "127.0.0.1:0", "--stdio"], "not allowed with"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line(
    tmp_path: Path, content: str | None, arguments: list[str], words: str
) -> None:
    file = tmp_path / "f.json"
    if content is not None:
        file.write_text(content)
    done = subprocess.run(
        [*COMMAND, "--servers", str(file), *arguments], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_keys_are_warned_about_once(tmp_path: Path) -> None:
    file = servers_file(tmp_path, s={**lines(tmp_path), "autoApprove": []})
    done = subprocess.run(
        [*COMMAND, "--servers", file, "--stdio"], input=b"", capture_output=True, timeout=30
    )
    assert done.stderr.count(b"'autoApprove'") == 1


def until(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def having(mark: str) -> list[int]:
    """Processes with this text in their environment."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                data = Path(f"/proc/{name}/environ").read_bytes()
            except OSError:
                continue
            if mark.encode() in data:
                found.append(int(name))
    return found
