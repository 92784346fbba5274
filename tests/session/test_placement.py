"""An agent that is named by its profile, on the real daemon: what it is started with, what its
files say, how it is told the system prompt, what is left of it (bridge/session/placement.py)."""

import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.agent import scripted
from tests.peers.host import Host
from tests.peers.processes import wait_until
from tests.peers.servers import Server, mcp_server, model_server

KEY = "sk-CANARY-of-the-model"
LOOPS = ["asyncio", "uvloop", "trio"]
SYSTEM = 'Be "kind".\nAlways.'
PROFILE = """
name = "own"
title = "The scripted agent"

[launch]
command = COMMAND
unset = ["MISLEADING"]

[launch.environment]
STATE = "${state}"
WHERE = "${cwd} ${session}"
OPENAI_BASE_URL = "${model.url}"
KEY_OF_MODEL = "${model.key}"
TOKEN_A = "${token}"
TOKEN_B = "${token}"
CONFIG = { url = "${model.url}", model = "${model.name}", wire = "${model.wire}" }

[wires.chat]

[[files]]
path = "deep/model.json"
json = { baseUrl = "${model.url}", model = "${model.name}" }

[[files]]
path = "launch"
text = "#!/bin/sh\\nexit 0\\n"
executable = true
"""
AT_START = '[[files]]\npath = "SYSTEM.md"\ntext = "<${system_prompt}>"\n'
IN_META = '[session.meta.systemPrompt]\nappend = "${system_prompt}"\n'
MCP_FILE = """
[[files]]
path = "mcp.json"
json = { mcpServers = "${mcp.servers}" }
[mcp]
via = "file"
server = { url = "${server.url}", headers = "${server.headers}" }
"""


def profile(folder: Path, more: str = "", *options: str) -> str:
    """The path of a profile that starts the scripted agent."""
    path = folder / "own.toml"
    path.write_text(PROFILE.replace("COMMAND", json.dumps(scripted(*options))) + more)
    return str(path)


def initialized(**session: Any) -> str:
    """The option by which the agent advertises these session capabilities."""
    can = {"sessionCapabilities": session, "mcpCapabilities": {"http": True}}
    result = {"protocolVersion": 1, "agentCapabilities": can, "authMethods": []}
    return f"initialize={json.dumps(result)}"


def environment(host: Host, *names: str, **config: Any) -> dict[str, str]:
    """What the agent says of its environment."""
    return json.loads(host.reply(None, f"env {' '.join(names)}", **config))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with model_server(tmp_path_factory.mktemp("model") / "requests.ndjson") as server:
        yield server


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with mcp_server(tmp_path_factory.mktemp("mcp") / "calls.ndjson") as server:
        yield server


@pytest.fixture
def settings(model: Server) -> dict[str, Any]:
    return {"base_url": f"{model.url}/v1", "name": "scripted", "api_key": KEY}


@pytest.mark.parametrize("loop", LOOPS)
def test_it_is_started_as_the_profile_says_and_leaves_nothing(
    tmp_path: Path, model: Server, settings: dict[str, Any], loop: str
) -> None:
    inherited = {"MISLEADING": "1", "TMPDIR": str(tmp_path)}
    with Host(tmp_path, "--loop", loop, environment=inherited) as host:
        host.hello()
        names = ("STATE", "WHERE", "KEY_OF_MODEL", "TOKEN_A", "TOKEN_B", "CONFIG", "MISLEADING")
        config = {"agent": profile(tmp_path), "model": settings, "env": {"OTHER": "1"}}
        seen = environment(host, *names, "OPENAI_BASE_URL", "OTHER", **config)
        state = Path(seen["STATE"])
        assert state.parent == tmp_path
        assert seen["WHERE"] == f"{tmp_path} "
        assert (seen["KEY_OF_MODEL"], seen["OTHER"], seen.get("MISLEADING")) == (KEY, "1", None)
        assert seen["TOKEN_A"] == seen["TOKEN_B"]
        assert len(seen["TOKEN_A"]) == 32

        ours = seen["OPENAI_BASE_URL"]
        assert ours.startswith("http://127.0.0.1:")
        assert ours.endswith("/v1")
        assert not ours.startswith(model.url)
        assert json.loads(seen["CONFIG"]) == {"url": ours, "model": "scripted", "wire": "chat"}
        file = state / "deep/model.json"
        assert json.loads(file.read_text()) == {"baseUrl": ours, "model": "scripted"}
        assert [mode(path) for path in (state, file.parent, file, state / "launch")] == [
            *(0o700, 0o700, 0o600, 0o700)
        ]

        asked = json.dumps({"messages": [{"role": "user", "content": f"SAY by {loop}"}]})
        host.prompt(None, f"post $OPENAI_BASE_URL/chat/completions {asked}")
        assert host.events("model", path="/v1/chat/completions")[0]["outcome"] == "complete"
        assert host.call("close")["ok"] is True
        assert not state.exists()
        host.shutdown()


def test_what_the_host_gives_wins_over_the_profile(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    more = '[session.meta]\na = { b = 1, c = 2 }\nd = "${model.name}"\n'
    with Host(tmp_path) as host:
        meta = {"a": {"c": 3, "e": 4}}
        config = {"agent": profile(tmp_path, more), "model": settings, "env": {"TOKEN_B": "mine"}}
        seen = environment(host, "TOKEN_B", **config, session_meta=meta)
        assert seen == {"TOKEN_B": "mine"}
        opened = host.log.messages("session/new")[0]["params"]
        assert opened["_meta"] == {"a": {"b": 1, "c": 3, "e": 4}, "d": "scripted"}
        host.shutdown()


def test_a_command_of_the_hosts_own_is_placed_in_the_same_way(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    with Host(tmp_path) as host:
        config = {"agent": profile(tmp_path, "", "from=profile"), "model": settings}
        seen = json.loads(host.reply(scripted("from=host"), "env STATE", **config))
        assert (Path(seen["STATE"]) / "deep/model.json").exists()
        assert host.log.events("start")[0]["argv"] == [*scripted("from=host")[3:]]
        host.shutdown()


def test_its_model_can_come_from_the_daemons_own_environment(tmp_path: Path, model: Server) -> None:
    daemon = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": KEY, "OPENAI_MODEL": "mine"}
    with Host(tmp_path, environment=daemon) as host:
        seen = environment(host, "CONFIG", "KEY_OF_MODEL", agent=profile(tmp_path))
        assert json.loads(seen["CONFIG"])["model"] == "mine"
        assert json.loads(seen["CONFIG"])["url"].endswith("/v1")
        assert seen["KEY_OF_MODEL"] == KEY
        host.shutdown()


def test_with_the_proxies_off_it_is_told_what_was_given(
    tmp_path: Path, settings: dict[str, Any], tools: Server
) -> None:
    with Host(tmp_path, "--model-proxy", "off", "--mcp-proxy", "off") as host:
        headers = {"mcp_headers": {"tiny": {"X-One": "1"}}, "mcp_urls": {"tiny": tools.url}}
        config = {"agent": profile(tmp_path, MCP_FILE), "model": settings} | headers
        state = Path(environment(host, "STATE", **config)["STATE"])
        assert (
            json.loads((state / "deep/model.json").read_text())["baseUrl"] == settings["base_url"]
        )
        server = {"url": tools.url, "headers": {"X-One": "1"}}
        assert json.loads((state / "mcp.json").read_text()) == {"mcpServers": {"tiny": server}}
        host.shutdown()


def test_mcp_servers_in_a_file_are_behind_the_proxy(
    tmp_path: Path, settings: dict[str, Any], tools: Server
) -> None:
    with Host(tmp_path) as host:
        host.hello()
        secret = {"tiny": {"Authorization": "Bearer CANARY"}}
        config = {"agent": profile(tmp_path, MCP_FILE), "model": settings, "mcp_headers": secret}
        state = Path(environment(host, "STATE", **config, mcp_urls={"tiny": tools.url})["STATE"])
        text = (state / "mcp.json").read_text()
        assert "CANARY" not in text
        server = json.loads(text)["mcpServers"]["tiny"]
        assert list(server) == ["url"]
        assert server["url"] != tools.url
        assert host.log.messages("session/new")[0]["params"]["mcpServers"] == []
        # What the file says works, and the host's own calls go the same way.
        called = host.call("call_tool", name="tiny_echo", arguments={"message": "hi"}, config={})
        assert called["result"]["content"][0]["text"] == "echo: hi"
        host.shutdown()


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


@pytest.mark.parametrize(
    "change, words",
    [
        ({"agent": "nobody"}, "there is no agent profile 'nobody'; there are claude-code"),
        ({"model": {}}, "needs a model server: give config.model.base_url"),
        ({"model": {"base_url": "http://h"}}, "needs a model's name: give config.model.name"),
        ({"model": {"base_url": "http://h", "name": "m", "wire": "x"}}, "config.model: .*wire"),
        ({"model": {"base_url": "http://h", "name": "m", "wire": "gemini"}}, "it speaks chat"),
        ({"model": {"base_url": "file:///", "name": "m"}}, "config.model: .*http:// or https://"),
        ({"model": {"base_url": "http://h", "name": "m", "limts": {}}}, "config.model: .*limts"),
        ({"agent_options": {"disabled_tools": ["x"]}}, "no way of switching tools off"),
        ({"agent_options": {"version": "1.0.0"}}, "installs nothing"),
        ({"agent_options": {"stat": "x"}}, "stat"),
        ({"agent_options": {"state": "own.toml/x"}}, "config.agent_options.state: .*own.toml"),
    ],
)
def test_what_cannot_be_placed_is_refused_by_name(
    tmp_path: Path, settings: dict[str, Any], change: dict[str, Any], words: str
) -> None:
    config = {"agent": profile(tmp_path), "model": settings} | change
    with Host(tmp_path, environment={"TMPDIR": str(tmp_path)}) as host:
        host.hello()
        response = host.call("open", config=config)
        assert response["ok"] is False
        assert response["code"] in ("invalid_request", "unsupported")
        assert re.search(words, response["error"]), response
        assert host.log.events("start") == []
        assert host.call("status")["ok"] is True
        host.shutdown()
    assert not list(tmp_path.glob("acp-mcp-bridge-*"))


def test_one_that_is_not_installed_says_how_to_get_it(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    environment = {"PATH": os.defpath, "BRIDGE_AGENTS_DIR": str(tmp_path / "none")}
    with Host(tmp_path, environment=environment) as host:
        host.hello()
        response = host.call("open", config={"agent": "pi", "model": settings})
        assert response["code"] == "spawn_failed"
        assert "acp-mcp-bridge agents install pi" in response["error"]
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
