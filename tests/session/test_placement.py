"""An agent that is named by its profile, on the real daemon: what it is started with, what its
files say, what is refused (bridge/session/placement.py)."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.agent import scripted
from tests.peers.host import Host
from tests.peers.servers import Server, mcp_server, model_server
from tests.session.placed import (
    KEY,
    LOOPS,
    MCP_FILE,
    environment,
    mode,
    profile,
)


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
    trace = tmp_path / "trace.ndjson"
    with Host(tmp_path, "--loop", loop, "--record", str(trace), environment=inherited) as host:
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
    # The agent says its environment aloud, so that the key has come by more than once.
    assert "own.toml" in trace.read_text()
    assert "CANARY" not in trace.read_text()


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


def test_all_of_it_can_be_the_daemons_own_settings(tmp_path: Path, model: Server) -> None:
    daemon = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": KEY, "OPENAI_MODEL": "mine"}
    with Host(tmp_path, "--agent", profile(tmp_path), environment=daemon) as host:
        seen = environment(host, "CONFIG", "KEY_OF_MODEL")
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
