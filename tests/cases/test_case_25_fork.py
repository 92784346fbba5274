"""Case 25: what an agent cannot do is refused by name, never done some other way."""

import pytest

from tests.cases.conftest import Spawn
from tests.peers.agent import scripted
from tests.peers.processes import wait_until


def test_a_fork_is_refused_when_the_agent_cannot(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    assert host.reply(scripted("without=fork"), "say one") == "one"
    response = host.call("fork", new_session="branch")
    assert (response["ok"], response["code"]) == (False, "unsupported")
    assert "fork" in response["error"]
    assert host.log.methods().count("session/new") == 1
    assert "session/fork" not in host.log.methods()
    assert host.reply(None, "say two") == "two"
    host.shutdown()


def test_a_fork_is_a_session_of_its_own(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.hello()
    assert host.reply(scripted(), "say one") == "one"
    forked = host.call("fork", new_session="branch", cwd=str(host.log.path.parent))
    assert forked["result"]["session_id"] == "s-fork"
    slow = host.start(None, "wait go\nsay trunk")
    assert wait_until(lambda: len(host.log.prompts()) == 2)
    response = host.answer(host.start(None, "say leaf", session="branch"))
    assert response["result"]["reply"] == "leaf"
    (host.log.path.parent / "go").touch()
    assert host.answer(slow)["result"]["reply"] == "trunk"
    sessions = [m["params"]["sessionId"] for m in host.log.messages("session/prompt")]
    assert sessions == ["s", "s", "s-fork"]
    assert host.call("close", session="branch")["ok"] is True
    assert host.reply(None, "say still here") == "still here"
    host.shutdown()


def test_a_fork_needs_a_source_and_a_free_name(spawn: Spawn) -> None:
    host = spawn()
    missing = host.call("fork", session="nowhere", new_session="branch")
    assert missing["ok"] is False
    assert "nowhere" in missing["error"]
    assert host.reply(scripted(), "say one") == "one"
    taken = host.call("fork", new_session="")
    assert (taken["ok"], taken["code"]) == (False, "invalid_request")
    assert "session/fork" not in host.log.methods()
    host.shutdown()


@pytest.mark.parametrize(
    ("operation", "fields", "without"),
    [
        ("list_sessions", {}, "list"),
        ("delete_session", {"session_id": "s-1"}, "delete"),
        ("steer", {"message": "left"}, "steering"),
    ],
)
def test_other_things_that_it_cannot_do_are_refused_too(
    spawn: Spawn, operation: str, fields: dict[str, str], without: str
) -> None:
    host = spawn()
    assert host.reply(scripted(f"without={without}"), "say one") == "one"
    before = host.log.methods()
    response = host.call(operation, **fields)
    assert response["ok"] is False
    assert response["code"] in ("unsupported", "invalid_request")
    assert host.log.methods() == before
    host.shutdown()


def test_without_close_a_session_is_closed_by_its_agent_s_end(spawn: Spawn) -> None:
    host = spawn()
    assert host.reply(scripted("without=close"), "say one") == "one"
    assert host.call("close")["ok"] is True
    assert "session/close" not in host.log.methods()
    host.shutdown()
