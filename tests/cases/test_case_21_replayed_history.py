"""Case 21: the history that a load replays is never taken for new output."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cases.conftest import Spawn
from tests.peers.agent import AgentLog, scripted
from tests.peers.host import DAEMON, config

NEW = "think hm\ntool t1 completed\nsay new"


def shape(events: list[dict[str, Any]]) -> list[str]:
    return [event["update"]["sessionUpdate"] for event in events if not event.get("replay")]


def test_a_loaded_session_replies_like_a_new_one(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.hello()
    loaded = host.call(
        "load", session="old", session_id="s-7", config={"command": scripted("replay=old")}
    )
    assert loaded["ok"] is True
    first = host.answer(host.start(None, NEW, session="old"))
    second = host.answer(host.start(scripted(), NEW, session="new"))
    assert first["result"]["reply"] == second["result"]["reply"] == "new"
    old, new = host.events("update", session="old"), host.events("update", session="new")
    assert shape(old) == shape(new) == ["agent_thought_chunk", "tool_call", "agent_message_chunk"]
    replayed = [event for event in old if event.get("replay")]
    assert [event["turn"] for event in replayed] == [None] * 3
    assert "old" in json.dumps(replayed)
    host.shutdown()
    assert host.log.messages("session/load")[0]["params"]["sessionId"] == "s-7"


def test_a_load_that_answers_null_is_a_success(spawn: Spawn) -> None:
    host = spawn()
    settings = {"command": scripted("load=null", "replay=old")}
    assert host.call("load", session_id="s-7", config=settings)["ok"] is True
    assert host.reply(None, "say new") == "new"
    host.shutdown()


def test_a_resumed_session_is_not_replayed(spawn: Spawn) -> None:
    host = spawn()
    host.hello()
    settings = {"command": scripted("replay=old")}
    resumed = host.call("resume", session_id="s-7", config=settings)
    assert resumed["result"]["session_id"] == "s-7"
    assert host.reply(None, "say new") == "new"
    assert host.log.methods()[:3] == ["initialize", "session/resume", "session/prompt"]
    host.shutdown()


@pytest.mark.parametrize("without", ["", "resume"])
def test_once_with_a_session_file_replies_only_what_is_new(tmp_path: Path, without: str) -> None:
    log = AgentLog(tmp_path / "agent.ndjson")
    session = tmp_path / "deep/down/session"
    agent = scripted("replay=old", f"without={without}")

    def once(text: str) -> str:
        file = tmp_path / "config.json"
        file.write_text(json.dumps(config("A", [text], agent, session_path=str(session))))
        done = subprocess.run(
            [*DAEMON, "once", str(file)],
            env={"PATH": "/usr/bin:/bin", "SCRIPTED_LOG": str(log.path)},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert not file.exists()
        return done.stdout

    assert once("say first") == "first"
    assert session.read_text().strip() == "s"
    session.write_text(" s\n\n")
    assert once("say second") == "second"
    restored = "session/load" if without else "session/resume"
    assert log.messages(restored)[0]["params"]["sessionId"] == "s"
    assert log.methods().count("session/new") == 1
