"""Case 23: a session that cannot be restored is an error of its own, never a fresh session."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.cases.conftest import Spawn
from tests.peers.agent import AgentLog, scripted
from tests.peers.host import DAEMON, config


@pytest.mark.parametrize("operation", ["load", "resume"])
@pytest.mark.parametrize(
    ("code", "words"),
    [(-32002, "Resource not found"), (-32603, "Internal error"), (-32602, "no such session")],
)
def test_the_agent_s_refusal_is_told_and_nothing_is_made_instead(
    spawn: Spawn, operation: str, code: int, words: str
) -> None:
    host = spawn()
    agent = scripted(f"{operation}=error:{code}:{words}")
    response = host.call(operation, session_id="gone", config={"command": agent})
    assert response["ok"] is False
    assert response["agent_code"] == code
    assert words in response["error"]
    assert "gone" in response["error"]
    assert response["code"] == "session_not_found"
    assert host.log.methods() == ["initialize", f"session/{operation}"]
    host.shutdown()


def test_a_prompt_after_it_does_not_start_afresh(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    agent = scripted("load=error:-32002:Resource not found")
    assert host.call("load", session_id="gone", config={"command": agent})["ok"] is False
    assert host.prompt(None, "say no")["ok"] is False
    assert "session/new" not in host.log.methods()
    assert "session/prompt" not in host.log.methods()
    host.shutdown()


@pytest.mark.parametrize("operation", ["load", "resume"])
def test_an_agent_that_cannot_restore_is_not_asked_to(spawn: Spawn, operation: str) -> None:
    host = spawn()
    agent = scripted(f"without={operation}")
    response = host.call(operation, session_id="s-1", config={"command": agent})
    assert (response["ok"], response["code"]) == (False, "unsupported")
    assert operation in response["error"]
    assert host.log.methods() == ["initialize"]
    host.shutdown()


def test_the_session_of_a_prompt_may_go_too(spawn: Spawn) -> None:
    host = spawn()
    error = 'error {"code":-32002,"message":"Resource not found"}'
    response = host.prompt(scripted(), error)
    assert (response["ok"], response["agent_code"]) == (False, -32002)
    assert response["code"] in ("session_not_found", "agent_error")
    host.shutdown()


def test_once_fails_in_words_and_sends_no_prompt(tmp_path: Path) -> None:
    log = AgentLog(tmp_path / "agent.ndjson")
    session = tmp_path / "session"
    session.write_text("gone\n")
    agent = scripted("resume=error:-32002:Resource not found")
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config("A", ["hi"], agent, session_path=str(session))))
    done = subprocess.run(
        [*DAEMON, "once", str(file)],
        env={"PATH": "/usr/bin:/bin", "SCRIPTED_LOG": str(log.path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "Resource not found" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert log.methods() == ["initialize", "session/resume"]
    assert session.read_text() == "gone\n"
