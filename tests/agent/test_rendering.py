"""bridge.agent.rendering: each built-in profile filled in, compared with the recipe that was tried
with the real agent; what a session gives and a profile has no place for."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bridge.agent import profile, rendering, task_program
from bridge.agent.endpoint import Endpoint
from bridge.agent.rendering import Inputs, Places, Rendered
from bridge.errors import BridgeError, UsageError
from protocol_schemas.profile import Profile, Wire

BIN = Path("/opt/agent/node_modules/.bin")
URL = "http://127.0.0.1:9/segment"
TINY = {"type": "http", "name": "tiny", "url": "http://127.0.0.1:8/mcp", "headers": []}
SYSTEM = 'Be "kind".\nAlways.'


def places() -> Places:
    return Places(BIN, BIN.parents[1], Path("/opt/node/bin"))


def inputs(wire: Wire, **more: Any) -> Inputs:
    model = Endpoint(wire, URL, "key", "scripted")
    return Inputs(model, Path("/state"), "/work", "", places)._replace(**more)


def render(name: str, wire: Wire | None = None, **more: Any) -> Rendered:
    found = profile.load(name, {"HOME": "/nowhere"})
    return rendering.render(found, inputs(wire or next(iter(found.wires)), **more))


def values(rendered: Rendered) -> dict[str, Any]:
    """The environment, its JSON read."""
    return {
        name: json.loads(text) if text.startswith("{") else text
        for name, text in rendered.environment.items()
    }


def files(rendered: Rendered) -> dict[str, Any]:
    """The files by their paths, those in JSON and TOML read."""
    readers = {".json": json.loads, ".toml": tomllib.loads}
    return {
        file.path: readers.get(Path(file.path).suffix, str)(file.data.decode())
        for file in rendered.files
    }


def test_claude_code():
    rendered = render("claude-code")
    assert rendered.argv == [f"{BIN}/claude-agent-acp"]
    assert values(rendered) == {
        "ANTHROPIC_BASE_URL": URL,
        "ANTHROPIC_API_KEY": "key",
        "ANTHROPIC_MODEL": "scripted",
        "CLAUDE_CONFIG_DIR": "/state",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "ENABLE_TOOL_SEARCH": "false",
        "IS_SANDBOX": "1",
    }
    assert files(rendered) == {"settings.json": {"permissions": {"defaultMode": "default"}}}
    options = rendered.meta["claudeCode"]["options"]
    name = options["extraArgs"].pop("name")
    assert len(name) == 32
    assert rendered.meta == {
        "claudeCode": {
            "options": {"strictMcpConfig": True, "promptSuggestions": False, "extraArgs": {}}
        }
    }
    more = render("claude-code", system_prompt=SYSTEM, disabled_tools=["Bash", "Edit"])
    assert more.system_told is False
    assert more.meta_with_system is not None
    assert more.meta_with_system["systemPrompt"] == {"append": SYSTEM}
    assert more.meta_with_system["claudeCode"]["options"]["disallowedTools"] == ["Bash", "Edit"]
    assert "systemPrompt" not in more.meta


def test_codex():
    rendered = render("codex")
    assert rendered.argv == [f"{BIN}/codex-acp"]
    off = {"apps": False, "plugins": False, "code_mode": False, "multi_agent": False}
    gateway = {
        "baseUrl": URL,
        "headers": {"Authorization": "Bearer key"},
        "providerName": "Bridge",
    }
    assert values(rendered) == {
        "CODEX_HOME": "/state",
        "INITIAL_AGENT_MODE": "agent-full-access",
        "NO_BROWSER": "1",
        "CODEX_CONFIG": {
            "model": "scripted",
            "features": off | {"multi_agent_v2": {"enabled": False}},
        },
        "DEFAULT_AUTH_REQUEST": {"methodId": "gateway", "_meta": {"gateway": gateway}},
    }
    assert files(rendered) == {"config.toml": {}}
    assert rendered.meta == {}


@pytest.mark.parametrize(
    "wire, api",
    [
        ("chat", "openai-completions"),
        ("responses", "openai-responses"),
        ("anthropic", "anthropic-messages"),
    ],
)
def test_pi(wire: Wire, api: str):
    rendered = render("pi", wire, servers=[TINY])
    assert rendered.argv == [f"{BIN}/pi-acp"]
    assert rendered.environment == {
        "PI_CODING_AGENT_DIR": "/state",
        "PI_ACP_PI_COMMAND": "/state/launch",
        "PI_OFFLINE": "1",
        "PI_TELEMETRY": "0",
        "BRIDGE_PI": f"{BIN}/pi",
        "BRIDGE_PI_KEY": "key",
        "BRIDGE_PI_MODEL": "scripted",
    }
    written = files(rendered)
    model = {"id": "scripted", "reasoning": False, "input": ["text", "image"]}
    assert written["models.json"] == {
        "providers": {
            "bridge": {"baseUrl": URL, "api": api, "apiKey": "$BRIDGE_PI_KEY", "models": [model]}
        }
    }
    assert written["settings.json"] == {"quietStartup": True}
    server = {"url": TINY["url"], "exposure": "direct"}
    assert written["mcp.json"] == {"mcpServers": {"tiny": server}}
    assert [file.path for file in rendered.files if file.executable] == ["launch"]
    more = render("pi", wire, system_prompt=SYSTEM, disabled_tools=["bash", "edit"])
    assert more.system_told is True
    assert more.environment["BRIDGE_PI_SYSTEM_PROMPT"] == SYSTEM
    assert more.environment["BRIDGE_PI_DISABLED_TOOLS"] == "bash,edit"
    assert files(more)["mcp.json"] == {"mcpServers": {}}


@pytest.mark.parametrize(
    "wire, kind",
    [("chat", "openai"), ("responses", "openai_responses"), ("anthropic", "anthropic")],
)
def test_kimi_code(wire: Wire, kind: str):
    rendered = render("kimi-code", wire)
    assert rendered.argv == [f"{BIN}/kimi", "acp"]
    assert rendered.environment == {
        "KIMI_CODE_HOME": "/state",
        "KIMI_MODEL_NAME": "scripted",
        "KIMI_MODEL_API_KEY": "key",
        "KIMI_MODEL_BASE_URL": URL,
        "KIMI_MODEL_PROVIDER_TYPE": kind,
        "KIMI_DISABLE_TELEMETRY": "1",
        "KIMI_CODE_NO_AUTO_UPDATE": "1",
    }
    assert files(rendered) == {"config.toml": {}}
    [rule] = files(render("kimi-code", disabled_tools=["Bash"]))["config.toml"]["permission"][
        "rules"
    ]
    assert (rule["decision"], rule["scope"], rule["pattern"]) == ("deny", "user", "Bash")


@pytest.mark.parametrize(
    "wire, kind, api",
    [
        ("chat", "openai", "completions"),
        ("responses", "openai", "responses"),
        ("anthropic", "anthropic", None),
    ],
)
def test_copilot(wire: Wire, kind: str, api: str | None):
    rendered = render("copilot", wire)
    assert rendered.argv == [f"{BIN}/copilot", "--acp"]
    spoken = {"COPILOT_PROVIDER_WIRE_API": api} if api else {}
    assert rendered.environment == spoken | {
        "COPILOT_PROVIDER_BASE_URL": URL,
        "COPILOT_PROVIDER_TYPE": kind,
        "COPILOT_PROVIDER_API_KEY": "key",
        "COPILOT_MODEL": "scripted",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_HOME": "/state",
    }
    assert rendered.files == []


def test_gemini():
    rendered = render("gemini")
    assert rendered.argv == [f"{BIN}/gemini", "--acp", "--model", "scripted"]
    assert rendered.environment == {
        "GEMINI_API_KEY": "key",
        "GOOGLE_GEMINI_BASE_URL": URL,
        "GEMINI_CLI_HOME": "/state",
        "GEMINI_CLI_NO_RELAUNCH": "true",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    auth = {"selectedType": "gemini-api-key"}
    assert files(rendered) == {
        ".gemini/settings.json": {
            "security": {"auth": auth, "folderTrust": {"enabled": False}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
            "telemetry": {"enabled": False},
        }
    }
    more = files(render("gemini", system_prompt=SYSTEM, disabled_tools=["x"]))
    assert more[".gemini/settings.json"]["tools"] == {"exclude": ["x"]}
    assert more[".gemini/GEMINI.md"] == SYSTEM


@pytest.mark.parametrize(
    "wire, package",
    [
        ("chat", "@ai-sdk/openai-compatible"),
        ("responses", "@ai-sdk/openai"),
        ("anthropic", "@ai-sdk/anthropic"),
    ],
)
def test_opencode(wire: Wire, package: str):
    rendered = render("opencode", wire, disabled_tools=["bash"])
    assert rendered.argv == [f"{BIN}/opencode", "acp"]
    found = values(rendered)
    provider = {
        "npm": package,
        "name": "Bridge",
        "options": {"baseURL": URL, "apiKey": "key"},
        "models": {
            "scripted": {
                "name": "scripted",
                "tool_call": True,
                "attachment": True,
                "modalities": {"input": ["text", "image"], "output": ["text"]},
                "limit": {"context": 200000, "output": 8192},
            }
        },
    }
    assert found.pop("OPENCODE_CONFIG_CONTENT") == {
        "model": "bridge/scripted",
        "small_model": "bridge/scripted",
        "autoupdate": False,
        "share": "disabled",
        "snapshot": False,
        "tools": {"bash": False},
        "provider": {"bridge": provider},
    }
    assert found == {
        "XDG_CONFIG_HOME": "/state/config",
        "XDG_DATA_HOME": "/state/data",
        "XDG_CACHE_HOME": "/state/cache",
        "XDG_STATE_HOME": "/state/state",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }


@pytest.mark.parametrize(
    "wire, api", [("chat", "openai-completions"), ("responses", "openai-responses")]
)
def test_openclaw(wire: Wire, api: str):
    rendered = render("openclaw", wire, servers=[TINY], disabled_tools=["exec"])
    assert rendered.argv == ["sh", "/state/launch"]
    found = dict(rendered.environment)
    assert found.pop("OPENCLAW_GATEWAY_PORT").isdecimal()
    assert len(found.pop("OPENCLAW_GATEWAY_TOKEN")) == 32
    assert found == {
        "BRIDGE_OPENCLAW": f"{BIN}/openclaw",
        "OPENCLAW_CONFIG_PATH": "/state/openclaw.json",
        "OPENCLAW_STATE_DIR": "/state",
        "OPENCLAW_INTERCEPT_KEY": "key",
        "OPENCLAW_HIDE_BANNER": "1",
        "OPENCLAW_SUPPRESS_NOTES": "1",
    }
    written = files(rendered)["openclaw.json"]
    assert written["gateway"]["auth"] == {"mode": "token", "token": "${OPENCLAW_GATEWAY_TOKEN}"}
    assert written["agents"]["defaults"]["workspace"] == "/work"
    assert written["agents"]["defaults"]["model"] == {"primary": "bridge/scripted"}
    assert written["tools"]["toolSearch"] is False
    assert written["tools"]["deny"] == ["exec"]
    assert written["models"]["providers"]["bridge"] == {
        "baseUrl": URL,
        "apiKey": "${OPENCLAW_INTERCEPT_KEY}",
        "api": api,
        "request": {"allowPrivateNetwork": True},
        "models": [{"id": "scripted", "name": "scripted", "input": ["text", "image"]}],
    }
    assert written["mcp"]["servers"] == {
        "tiny": {
            "url": TINY["url"],
            "transport": "streamable-http",
            "connectionTimeoutMs": 60000,
            "requestTimeoutMs": 60000,
        }
    }


def test_pool():
    rendered = render("pool")
    assert rendered.argv == ["pool", "acp"]
    assert rendered.environment == {
        "POOLSIDE_STANDALONE_BASE_URL": URL,
        "POOLSIDE_STANDALONE_MODEL": "scripted",
        "POOLSIDE_API_KEY": "key",
    }


def test_rlm():
    rendered = render("rlm", system_prompt=SYSTEM)
    assert rendered.argv == ["rlm", "--acp"]
    assert rendered.environment == {"RLM_HOME": "/state"}
    assert rendered.meta_with_system is not None
    runtime = rendered.meta_with_system["ai.prime.rlm/runtime-v1"]
    assert runtime["provider"] == {"base_url": URL, "api_key": "key"}
    assert runtime["model"] == "scripted"
    assert runtime["append_to_system_prompt"] == SYSTEM
    assert runtime["policy"] == {}


def task(rendered: Rendered) -> list[str]:
    """The command of a profile whose program does one task, its prompt named."""
    assert rendered.argv[-1] == task_program.__file__
    told = json.loads(rendered.environment[task_program.VARIABLE])
    return [word.replace(told["prompt"], "<prompt>") for word in told["command"]]


def test_terminus_2():
    rendered = render("terminus-2", system_prompt="Not of ${prompt}")
    assert task(rendered) == [
        "terminus-2",
        f"--base-url={URL}",
        "--api-key=key",
        "--model=scripted",
        "--system-prompt=Not of ${prompt}",
        "--task=<prompt>",
    ]
    assert rendered.system_told is True
    assert rendered.environment["TMUX_TMPDIR"] == "/state"
    assert "--system-prompt" not in " ".join(task(render("terminus-2")))


def test_mini_swe_agent():
    rendered = render("mini-swe-agent")
    words = task(rendered)
    assert words[:7] == [
        *("mini", "--model", "scripted", "--model-class", "litellm", "--task"),
        "<prompt>",
    ]
    settings = [words[at + 1] for at, word in enumerate(words) if word == "-c"]
    assert f"model.model_kwargs.api_base={URL}" in settings
    assert "model.model_kwargs.api_key=key" in settings
    assert {"--yolo", "--exit-immediately"} <= set(words)
    assert rendered.environment["MSWEA_CONFIGURED"] == "true"


def test_a_hosts_own_command_may_say_where_the_prompt_goes():
    rendered = render("mini-swe-agent", command=["uv", "run", "mine", "-t=${prompt}"])
    assert task(rendered) == ["uv", "run", "mine", "-t=<prompt>"]


def own(**more: Any) -> Profile:
    text = f"""
name = "own"
title = ""
[launch]
command = ["${{bin}}/own"]
[launch.environment]
A = "${{prefix}} ${{node}} ${{version}}"
[install]
packages = {{ own = "1.2.3" }}
[wires.chat]
{more.get("text", "")}
"""
    return profile.parse(text, "own.toml")


def test_its_own_programs_and_node_are_named_and_found_first():
    rendered = rendering.render(own(), inputs("chat"))
    assert rendered.environment == {"A": "/opt/agent /opt/node/bin/node 1.2.3"}
    assert rendered.node == Path("/opt/node/bin")
    assert rendering.program(own()) == "own"


def test_where_it_is_installed_is_not_asked_without_need():
    def never() -> Places:
        raise UsageError("not installed")

    assert render("pool", places=never).argv == ["pool", "acp"]
    assert render("codex", places=never, command=["mine"]).argv == ["mine"]
    with pytest.raises(UsageError, match="not installed"):
        render("codex", places=never)
    with pytest.raises(UsageError, match="not installed"):
        render("pi", places=never, command=["mine"])


def test_tools_that_cannot_be_switched_off_are_refused_by_name():
    with pytest.raises(BridgeError, match="'codex' has no way of switching tools off"):
        render("codex", disabled_tools=["shell"])


def test_a_server_that_a_file_cannot_name_is_refused():
    with pytest.raises(BridgeError, match="'pi' takes MCP servers over http only: 'local'"):
        render("pi", servers=[{"name": "local", "command": "x", "args": [], "env": []}])
