"""Sessions of an agent that is named by its profile: how it is told the system prompt, its mode and
quirks, how long its state is kept (bridge/session/placement.py, opening.py)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.host import Host
from tests.peers.processes import wait_until
from tests.peers.servers import Server, model_server
from tests.session.placed import (
    AT_START,
    IN_META,
    KEY,
    PROFILE,
    SYSTEM,
    environment,
    initialized,
    mode,
    profile,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with model_server(tmp_path_factory.mktemp("model") / "requests.ndjson") as server:
        yield server


@pytest.fixture
def settings(model: Server) -> dict[str, Any]:
    return {"base_url": f"{model.url}/v1", "name": "scripted", "api_key": KEY}


def told(host: Host) -> tuple[dict[str, Any], str]:
    """What session/new said, and the text of the first prompt."""
    [new] = host.log.messages("session/new")
    return new["params"], "".join(block["text"] for block in host.log.prompts()[0])


@pytest.mark.parametrize("generation", ["A", "C"])
@pytest.mark.parametrize("way", ["text", "capability", "meta", "file"])
def test_the_system_prompt_goes_one_way(
    tmp_path: Path, settings: dict[str, Any], way: str, generation: str
) -> None:
    more = {"file": AT_START, "meta": IN_META}.get(way, "")
    options = [initialized(systemPrompt={})] if way == "capability" else []
    config = {"agent": profile(tmp_path, more, *options), "model": settings}
    with Host(tmp_path, generation=generation) as host:
        if generation == "C":
            host.hello()
        response = host.prompt(None, "env STATE", system_prompt=SYSTEM, **config)
        assert response["ok"] is True, response
        params, text = told(host)
        reply = response["reply"] if generation == "A" else response["result"]["reply"]
        state = Path(json.loads(reply[reply.index("{") :])["STATE"])
        content = {"mode": "append", "content": [{"type": "text", "text": SYSTEM}]}
        assert params.get("systemPrompt") == (content if way == "capability" else None)
        assert params.get("_meta") == (
            {"systemPrompt": {"append": SYSTEM}} if way == "meta" else None
        )
        if way == "file":
            assert (state / "SYSTEM.md").read_text() == f"<{SYSTEM}>"
        assert (SYSTEM in text) == (way == "text")
        host.shutdown()


def test_another_system_prompt_with_the_first_prompt_is_said_as_text(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    with Host(tmp_path) as host:
        config = {"agent": profile(tmp_path, AT_START), "model": settings, "system_prompt": SYSTEM}
        assert host.call("open", config=config)["ok"] is True
        host.prompt(None, "say hi", system_prompt="Be brief.")
        assert told(host)[1].startswith("(system)\nBe brief.")
        host.shutdown()


@pytest.mark.parametrize(
    "offered, words",
    [(["modes=1"], None), (["set_mode=error:-32602:no such mode"], "no such mode")],
)
def test_the_mode_of_the_profile_is_set_or_nothing_runs(
    tmp_path: Path, settings: dict[str, Any], offered: list[str], words: str | None
) -> None:
    config = {"agent": profile(tmp_path, '[session]\nmode = "ask"\n', *offered), "model": settings}
    with Host(tmp_path) as host:
        host.hello()
        response = host.prompt(None, "say hi", **config)
        [asked] = host.log.messages("session/set_mode")
        assert asked["params"]["modeId"] == "ask"
        if words is None:
            assert response["result"]["reply"] == "hi"
            assert host.log.methods().index("session/set_mode") < host.log.methods().index(
                "session/prompt"
            )
        else:
            assert f"the mode 'ask' could not be set: {words}" in response["error"]
            assert host.log.prompts() == []
        host.shutdown()


def test_its_quirks_are_heeded(tmp_path: Path, settings: dict[str, Any]) -> None:
    quirks = """
[quirks]
settle = 2
allow_empty_tool_reply = true
ignores_eof = true
exits = { 41 = "it could not authenticate" }
"""
    config = {"agent": profile(tmp_path, quirks, "eof=ignore"), "model": settings}
    with Host(tmp_path, generation="A") as host:
        assert host.reply(None, "say early\nlate  and late", **config) == "early and late"
        empty = host.prompt(None, "tool t completed", **config)
        assert empty == {"ok": True, "reply": ""}
        dead = host.prompt(None, "exit 41", **config)
        assert "exit code 41): it could not authenticate" in dead["error"]
        host.shutdown()


def test_an_agent_that_settles_lives_on_after_a_cancel(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    config = {"agent": profile(tmp_path, "[quirks]\nsettle = 0.1"), "model": settings}
    with Host(tmp_path) as host:
        host.hello()
        turn = host.start(None, "say on my way\nwait cancel", close_grace=0.5, **config)
        host.text_event("on my way")
        assert host.call("cancel")["ok"] is True
        assert host.answer(turn)["result"]["stop_reason"] == "cancelled"
        assert host.reply(None, "say and on", **config) == "and on"
        assert host.events("exit") == []
        host.shutdown()


def test_a_kept_state_serves_the_next_process(tmp_path: Path, settings: dict[str, Any]) -> None:
    state = tmp_path / "kept/state"
    options = {"state": "kept/state"}
    config = {"agent": profile(tmp_path, AT_START), "model": settings, "agent_options": options}
    with Host(tmp_path) as host:
        assert environment(host, "STATE", **config, system_prompt=SYSTEM) == {"STATE": str(state)}
        (state / "of the agent").touch()
        host.shutdown()
    assert mode(state) == 0o700
    with Host(tmp_path) as host:
        loaded = host.call("load", session_id="s", config=config)
        assert loaded["ok"] is True, loaded
        assert (state / "of the agent").exists()
        assert not (state / "SYSTEM.md").exists()
        host.shutdown()


def test_a_fork_keeps_the_state_that_it_shares(tmp_path: Path, settings: dict[str, Any]) -> None:
    with Host(tmp_path) as host:
        host.hello()
        config = {"agent": profile(tmp_path), "model": settings}
        state = Path(environment(host, "STATE", **config)["STATE"])
        assert host.call("fork", new_session="branch")["ok"] is True
        assert host.call("close")["ok"] is True
        assert state.exists()
        assert host.reply(None, "say on", session="branch") == "on"
        assert host.call("close", session="branch")["ok"] is True
        assert not state.exists()
        host.shutdown()


def test_an_agent_that_died_comes_back_to_its_state(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    with Host(tmp_path) as host:
        host.hello()
        config = {"agent": profile(tmp_path), "model": settings}
        state = Path(environment(host, "STATE", **config)["STATE"])
        assert host.prompt(None, "exit 3")["code"] == "agent_exited"
        (state / "of the agent").touch()
        assert host.call("load", session_id="s", config=config)["ok"] is True
        assert environment(host, "STATE") == {"STATE": str(state)}
        assert (state / "of the agent").exists()
        host.shutdown()
        assert not state.exists()


def test_a_program_that_does_one_task_is_run_for_each_prompt(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    path = tmp_path / "task.toml"
    command = ["sh", "-c", 'echo "$OPENAI_BASE_URL $1"', "sh", "${prompt}"]
    text = PROFILE.replace("COMMAND", json.dumps(command) + "\ntask = true")
    path.write_text(text + '[mcp]\nvia = "none"\n')
    config = {"agent": str(path), "model": settings}
    with Host(tmp_path) as host:
        host.hello()
        for prompt in ("one", "two"):
            url, _, said = host.reply(None, prompt, **config).strip().partition(" ")
            assert said == prompt
            assert url.startswith("http://127.0.0.1:")
        given = config | {"mcp_urls": {"tiny": "http://127.0.0.1:1/mcp"}}
        refused = host.call("open", session="other", config=given)
        assert "takes no MCP servers" in refused["error"]
        host.shutdown()


def test_the_state_goes_with_a_daemon_that_is_ended(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    with Host(tmp_path, environment={"TMPDIR": str(tmp_path)}) as host:
        host.hello()
        config = {"agent": profile(tmp_path), "model": settings}
        state = Path(environment(host, "STATE", **config)["STATE"])
        host.process.terminate()
        assert wait_until(lambda: not state.exists(), 10)


def test_it_has_the_time_to_start_that_its_profile_gives(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    more = "[quirks]\nstart_timeout = 0.25\n"
    config = {"agent": profile(tmp_path, more, "initialize=silent"), "model": settings}
    with Host(tmp_path) as host:
        host.hello()
        late = host.call("open", config=config)
        assert (late["code"], late["origin"]) == ("timeout", "agent")
        assert "not ready within 0." in late["error"]
        own = host.call("open", config=config | {"start_timeout": 0.5})
        assert "not ready within 0.5 s" in own["error"]
        host.shutdown()
