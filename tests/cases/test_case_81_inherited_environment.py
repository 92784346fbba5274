"""Case 81: an agent gets the daemon's environment, less what would make it refuse to start."""

import json

from tests.cases.conftest import Spawn
from tests.peers.agent import scripted

GUARDS = {
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "CLAUDE_CODE_SSE_PORT": "1234",
}


def test_nested_session_guards_are_removed(spawn: Spawn, talk: dict[str, str]) -> None:
    host = spawn(environment=GUARDS | {"KEPT": "yes"}, **talk)
    said = json.loads(host.reply(scripted(), f"env {' '.join(GUARDS)} KEPT"))
    assert said == dict.fromkeys(GUARDS) | {"KEPT": "yes"}
    host.shutdown()


def test_what_the_session_asks_for_wins(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop, environment=GUARDS | {"KEPT": "no", "OTHER": "same"})
    asked = {"CLAUDECODE": "2", "KEPT": "yes", "NEW": "é北"}
    said = json.loads(host.reply(scripted(), "env CLAUDECODE KEPT NEW OTHER", env=asked))
    assert said == asked | {"OTHER": "same"}
    host.shutdown()


def test_one_session_s_environment_is_not_another_s(spawn: Spawn) -> None:
    host = spawn()
    first = host.start(scripted(), "env ONLY", session="one", env={"ONLY": "one"})
    second = host.start(scripted(), "env ONLY", session="two")
    assert json.loads(host.answer(first)["result"]["reply"]) == {"ONLY": "one"}
    assert json.loads(host.answer(second)["result"]["reply"]) == {"ONLY": None}
    host.shutdown()


def test_the_loopback_is_never_reached_through_a_proxy(spawn: Spawn, talk: dict[str, str]) -> None:
    host = spawn(
        environment={"NO_PROXY": "example.test", "HTTP_PROXY": "http://127.0.0.1:9"}, **talk
    )
    said = json.loads(host.reply(scripted(), "env NO_PROXY no_proxy HTTP_PROXY"))
    for name in ("NO_PROXY", "no_proxy"):
        assert {"127.0.0.1", "localhost"} <= set(said[name].split(","))
    assert "example.test" in said["NO_PROXY"].split(",")
    assert said["HTTP_PROXY"] == "http://127.0.0.1:9"
    host.shutdown()


def test_the_model_s_address_and_key_reach_the_agent(spawn: Spawn) -> None:
    given = {"OPENAI_API_KEY": "dummy-key", "SOME_BASE_URL": "http://127.0.0.1:9/v1"}
    host = spawn("--model-proxy", "off", environment=given)
    assert json.loads(host.reply(scripted(), f"env {' '.join(given)}")) == given
    host.shutdown()


def test_the_agent_runs_where_the_daemon_does_or_where_it_is_told(spawn: Spawn) -> None:
    host = spawn()
    here = host.log.path.parent
    there = here / "elsewhere"
    there.mkdir()
    assert host.reply(scripted(), "cwd") == str(here)
    response = host.answer(host.start(scripted(), "cwd", session="two", cwd=str(there)))
    assert response["result"]["reply"] == str(there)
    host.shutdown()
    opened = [message["params"]["cwd"] for message in host.log.messages("session/new")]
    assert opened == [str(here), str(there)]
