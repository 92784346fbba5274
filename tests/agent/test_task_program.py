"""bridge.agent.task_program: a program that does one task, driven as an ACP agent."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.agent import task_program
from tests.peers.processes import wait_until


class Acp:
    """A client of the agent whose program is `sh -c SCRIPT sh PROMPT`."""

    def __init__(self, script: str, folder: Path) -> None:
        self.task = {"command": ["sh", "-c", script, "sh", "<<>>"], "prompt": "<<>>"}
        self.task["exits"] = {"41": "it was not allowed to"}
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", task_program.__file__],
            env={"BRIDGE_TASK": json.dumps(self.task), "PATH": "/usr/bin:/bin"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def send(self, method: str, ident: int | None = None, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.write(json.dumps(message if ident is None else message | {"id": ident}))

    def write(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        message = json.loads(self.process.stdout.readline())
        assert message.pop("jsonrpc") == "2.0"
        return message

    def open(self) -> str:
        self.send("initialize", 1, protocolVersion=1)
        assert self.read()["result"]["protocolVersion"] == 1
        self.send("session/new", 2, cwd=str(self.folder), mcpServers=[])
        return self.read()["result"]["sessionId"]

    def prompt(self, session: str, *texts: str) -> tuple[str, dict[str, Any]]:
        """The text that came, and the response."""
        blocks = [{"type": "text", "text": text} for text in texts]
        self.send("session/prompt", 3, sessionId=session, prompt=blocks)
        said = ""
        while "id" not in (message := self.read()):
            said += message["params"]["update"]["content"]["text"]
        return said, message


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    made: list[Acp] = []

    def started(script: str) -> Acp:
        made.append(Acp(script, tmp_path))
        return made[-1]

    yield started
    for acp in made:
        with acp.process:
            acp.process.kill()


def test_each_prompt_is_a_run_in_the_sessions_directory(start: Any, tmp_path: Path) -> None:
    acp = start('printf "%s|" "$PWD" "$1"; env | grep -c BRIDGE_TASK || true')
    session = acp.open()
    for text in ('say "it"\n$HOME <<', "again"):
        said, response = acp.prompt(session, text, "!")
        assert said == f"{tmp_path}|{text}!|0\n"
        assert response == {"id": 3, "result": {"stopReason": "end_turn"}}


def test_a_failed_run_is_an_error_with_the_end_of_its_stderr(start: Any) -> None:
    acp = start('echo out; echo why >&2; exit "$1"')
    session = acp.open()
    said, response = acp.prompt(session, "7")
    assert said == "out\n"
    assert response["error"]["message"] == "the program ended with exit code 7; why"
    _, response = acp.prompt(session, "41")
    assert "exit code 41: it was not allowed to; why" in response["error"]["message"]


def test_what_is_not_utf_8_or_comes_in_pieces_is_text_all_the_same(start: Any) -> None:
    acp = start(r"printf '\303'; printf '\251\377'")
    assert acp.prompt(acp.open(), "")[0] == "é\ufffd"


def test_a_cancel_ends_the_program_and_all_it_started(start: Any) -> None:
    acp = start('sleep 1000 & echo "$!"; wait')
    session = acp.open()
    acp.send("session/prompt", 3, sessionId=session, prompt=[])
    child = int(acp.read()["params"]["update"]["content"]["text"])
    acp.send("session/cancel", sessionId=session)
    assert acp.read() == {"id": 3, "result": {"stopReason": "cancelled"}}
    assert wait_until(lambda: not alive(child), 5)


def test_the_end_of_stdin_ends_them_too(start: Any) -> None:
    acp = start('sleep 1000 & echo "$!"; wait')
    session = acp.open()
    acp.send("session/prompt", 3, sessionId=session, prompt=[])
    child = int(acp.read()["params"]["update"]["content"]["text"])
    acp.process.stdin.close()
    assert acp.process.wait(10) == 0
    assert wait_until(lambda: not alive(child), 5)


def alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_it_does_not_know_is_refused_and_noise_is_skipped(start: Any) -> None:
    acp = start("true")
    session = acp.open()
    for noise in ("no json", "[]", "null", '{"method": 1}'):
        acp.write(noise)
    acp.send("session/load", 4, sessionId=session)
    assert acp.read()["error"]["code"] == -32601
    acp.send("session/prompt", 5, sessionId="other", prompt=[])
    assert acp.read()["error"]["code"] == -32602
    assert acp.prompt(session, "nul\0")[1]["error"]["code"] == -32603
    assert acp.prompt(session, "ok")[1]["result"]["stopReason"] == "end_turn"
