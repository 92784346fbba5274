"""One prompt without a host: the session file, what the config says, and each way to end."""

import json
import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.agent import AgentLog, scripted
from tests.peers.host import DAEMON, config
from tests.peers.processes import MARKER, survivors, wait_until

LOOPS = ["asyncio", "uvloop", "trio"]


class Once:
    """Runs of `once` that share a directory and their agents' log."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = AgentLog(directory / "agent.ndjson")
        self.marker = uuid.uuid4().hex
        self._env = os.environ | {MARKER: self.marker, "SCRIPTED_LOG": str(self.log.path)}

    def start(
        self,
        *contents: Any,
        agent: list[str] | None = None,
        options: tuple[str, ...] = (),
        **more: Any,
    ) -> "subprocess.Popen[bytes]":
        file = self.directory / "config.json"
        file.write_text(json.dumps(config("A", list(contents), agent or scripted(), **more)))
        return subprocess.Popen(
            [*DAEMON, "once", *options, str(file)],
            env=self._env,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *contents: Any, code: int = 0, **more: Any) -> str:
        """The reply, or the last words of a run that ends with that code."""
        with self.start(*contents, **more) as process:
            out, err = process.communicate(timeout=60)
        assert process.returncode == code, (out, err)
        if code == 0:
            return out.decode()
        assert out == b""
        return err.decode().splitlines()[-1]


@pytest.fixture
def once(tmp_path: Path) -> Iterator[Once]:
    made = Once(tmp_path)
    yield made
    assert survivors(made.marker, 5) == []


def test_a_new_session_is_noted_and_found_again(once: Once) -> None:
    place = "deep/down/session"
    assert once.run("say first", session_path=place, system_prompt="Be kind.") == "first"
    assert (once.directory / place).read_text() == "s"
    assert "Be kind." in json.dumps(once.log.prompts()[0])
    (once.directory / place).write_text("\n s \n")
    agent = scripted("replay=old")
    assert once.run("say 2", agent=agent, session_path=place, system_prompt="Be kind.") == "2"
    assert once.log.messages("session/resume")[0]["params"]["sessionId"] == "s"
    assert once.log.prompts()[1] == [{"type": "text", "text": "say 2"}]
    agent = scripted("replay=old", "without=resume")
    assert once.run("say 3", agent=agent, session_path=place) == "3"
    assert once.log.messages("session/load")[0]["params"]["sessionId"] == "s"
    assert once.log.methods().count("session/new") == 1
    assert (once.directory / place).read_text() == "\n s \n"


def test_only_what_is_new_is_sent_to_a_session_that_ran_before(once: Once) -> None:
    (once.directory / "session").write_text("s")
    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "say three"},
    ]
    assert once.run("", messages=messages, session_path="session") == "three"
    assert once.log.prompts() == [[{"type": "text", "text": "say three"}]]


def test_a_session_that_cannot_be_restored_fails_and_sends_no_prompt(once: Once) -> None:
    (once.directory / "session").write_text("lost")
    neither = scripted("without=resume,load")
    words = once.run("say x", code=1, agent=neither, session_path="session")
    assert "neither resume nor load" in words
    refusing = scripted("resume=error:-32002:never seen")
    words = once.run("say x", code=1, agent=refusing, session_path="session")
    assert "'lost'" in words
    assert "never seen" in words
    assert once.log.prompts() == []
    assert "session/new" not in once.log.methods()


def test_a_failed_turn_leaves_no_session_file(once: Once) -> None:
    words = once.run("say half\nexit 3", code=1, session_path="session")
    assert "exit" in words
    assert "3" in words
    assert not (once.directory / "session").exists()


def test_a_session_path_that_cannot_be_used_is_named(once: Once) -> None:
    (once.directory / "folder").mkdir()
    assert "folder" in once.run("say x", code=1, session_path="folder")
    (once.directory / "file").write_text("s")
    assert "file/below" in once.run("say x", code=1, session_path="file/below")
    (once.directory / "empty").write_text("\n")
    assert "names no session" in once.run("say x", code=1, session_path="empty")
    (once.directory / "binary").write_bytes(b"\xff")
    assert "binary: not text" in once.run("say x", code=1, session_path="binary")
    for path in ("a\0b", "\ud800"):
        assert "not text" in once.run("say x", code=1, session_path=path)
    os.mkfifo(once.directory / "pipe")
    assert "no regular file" in once.run("say x", code=1, session_path="pipe")
    # Told before a turn that would be lost.
    assert once.log.prompts() == []


def test_a_turn_without_text_fails_unless_its_tools_may_speak_for_it(once: Once) -> None:
    silent = "tool t1 pending\ntool t1 completed"
    words = once.run(silent, code=1)
    assert "end_turn" in words
    assert "completed" in words
    assert once.run(silent, allow_empty_tool_reply=True) == ""


def test_settings_and_proxies_are_those_of_the_daemon(once: Once) -> None:
    settings = once.directory / "settings.json"
    settings.write_text(json.dumps({"defaults": {"env": {"FROM": "settings"}}}))
    trace = once.directory / "run.trace"
    urls = {"tiny": "http://127.0.0.1:1/mcp"}
    options = ("--config", str(settings), "--record", str(trace))
    assert "settings" in once.run("env FROM", options=options, mcp_urls=urls)
    server = once.log.messages("session/new")[0]["params"]["mcpServers"][0]
    assert server["url"] != urls["tiny"]
    recorded = [json.loads(line) for line in trace.read_text().splitlines()]
    host = [record for record in recorded if record.get("ch") == "host"]
    assert [record["dir"] for record in host] == ["in", "out"]
    assert host[1]["msg"]["ok"] is True


def test_user_contents_serve_as_well(once: Once) -> None:
    assert once.run("", messages=None, user_contents=["say one", "say two"]) == "two"


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it_in_time_with_nothing_on_stdout(
    once: Once, loop: str, number: int, code: int
) -> None:
    agent = scripted("spawn=1", "eof=ignore", "term=ignore")
    with once.start("say begun\nhang", agent=agent, options=("--loop", loop)) as process:
        assert wait_until(lambda: once.log.messages("session/prompt"))
        process.send_signal(number)
        out, err = process.communicate(timeout=5)
    assert (process.returncode, out) == (code, b"")
    assert err.startswith(b"acp-mcp-bridge: ")


@pytest.mark.parametrize("loop", LOOPS)
def test_a_reply_waits_for_a_slow_reader_until_a_signal(once: Once, loop: str) -> None:
    big = 1 << 20
    options = ("--loop", loop)
    with once.start(f"size {big}", options=options) as patient:
        assert wait_until(lambda: once.log.events("eof"))
        # Longer than it waits for a host that does not read its packets.
        assert not wait_until(lambda: patient.poll() is not None, 1.5)
        out, _ = patient.communicate(timeout=30)
    assert (patient.returncode, len(out)) == (0, big)
    with once.start(f"size {big}", options=options) as interrupted:
        assert wait_until(lambda: len(once.log.events("eof")) == 2)
        interrupted.send_signal(signal.SIGTERM)
        assert interrupted.wait(10) == 143


def test_a_reader_that_has_gone_before_the_end_is_a_failure(once: Once) -> None:
    with once.start(f"size {1 << 20}") as process:
        assert process.stdout is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait(10) == 1
        assert process.stderr is not None
        assert b"stdout was closed" in process.stderr.read()
