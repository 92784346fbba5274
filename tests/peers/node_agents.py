"""How each node agent is started against loopback servers only: command, environment, files."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".peers"
NODE = PEERS / "node/node_modules"
MORE = PEERS / "node-more/node_modules"


def node_bin() -> str:
    """The pinned node's directory, or nothing where npm has no binary for this machine."""
    found = sorted(NODE.glob("node-linux-*/bin/node"))
    return str(found[0].parent) if found else ""


@dataclass(frozen=True)
class Recipe:
    """A node agent, ready to be started by a daemon with this environment."""

    command: list[str]
    environment: dict[str, str]
    config: dict[str, Any] = field(default_factory=dict)
    """What its prompts' config has beside the command."""
    wire: str = "/chat/completions"
    """The path of the model wire that it speaks."""
    takes_mcp: bool = True
    """Whether MCP servers reach it through ACP."""


def _base(home: Path) -> dict[str, str]:
    """No key, no proxy and no home of the machine's own."""
    home.mkdir(parents=True, exist_ok=True)
    return {"HOME": str(home), "PATH": f"{node_bin()}:{os.environ['PATH']}", "NO_COLOR": "1"}


def _program(modules: Path, name: str) -> list[str]:
    program = modules / ".bin" / name
    assert program.exists(), f"{program} is missing: run `make peers` or `make e2e`"
    return ["node", str(program)]


def _write(file: Path, value: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(value if isinstance(value, str) else json.dumps(value))
    return file


def claude(home: Path, model: str, mcp: str) -> Recipe:
    """Claude Code's adapter, with the Claude Code that comes with it; asks before each tool."""
    settings = _write(home / ".claude/settings.json", {"permissions": {"defaultMode": "default"}})
    options = {"strictMcpConfig": True, "promptSuggestions": False, "extraArgs": {"name": "t"}}
    return Recipe(
        _program(NODE, "claude-agent-acp"),
        _base(home)
        | {
            "ANTHROPIC_BASE_URL": model,
            "ANTHROPIC_API_KEY": "dummy",
            "ANTHROPIC_MODEL": "scripted",
            "CLAUDE_CONFIG_DIR": str(settings.parent),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ENABLE_TOOL_SEARCH": "false",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        },
        {"session_meta": {"claudeCode": {"options": options}}},
        wire="/messages",
    )


def pi(home: Path, model: str, mcp: str) -> Recipe:
    """pi behind pi-acp; its MCP servers come from a file, not through ACP."""
    directory = home / "pi"
    entry = {"id": "scripted", "reasoning": False, "input": ["text", "image"]}
    provider = {
        "baseUrl": f"{model}/v1",
        "api": "openai-completions",
        "apiKey": "$PI_TEST_KEY",
        "models": [entry],
    }
    _write(directory / "models.json", {"providers": {"loopback": provider}})
    server = {"url": mcp, "exposure": "direct"}
    _write(directory / "mcp.json", {"mcpServers": {"tiny": server}})
    inner = " ".join(_program(NODE, "pi"))
    options = "--no-approve --provider loopback --model scripted"
    launcher = _write(directory / "pi", f'#!/bin/sh\nexec {inner} {options} "$@"\n')
    launcher.chmod(0o755)
    return Recipe(
        _program(NODE, "pi-acp"),
        _base(home)
        | {
            "PI_TEST_KEY": "dummy",
            "PI_CODING_AGENT_DIR": str(directory),
            "PI_OFFLINE": "1",
            "PI_TELEMETRY": "0",
            "PI_ACP_PI_COMMAND": str(launcher),
        },
        takes_mcp=False,
    )


def codex(home: Path, model: str, mcp: str) -> Recipe:
    """codex behind codex-acp, on the Responses wire; never asks in this mode."""
    directory = _write(home / "codex/config.toml", "").parent
    off = {"enabled": False}
    features = {"apps": False, "plugins": False, "code_mode": False, "multi_agent": False}
    settings = {"model": "scripted", "features": features | {"multi_agent_v2": off}}
    gateway = {
        "baseUrl": f"{model}/v1",
        "headers": {"Authorization": "Bearer dummy"},
        "providerName": "Loopback",
    }
    return Recipe(
        _program(MORE, "codex-acp"),
        _base(home)
        | {
            "CODEX_HOME": str(directory),
            "INITIAL_AGENT_MODE": "agent-full-access",
            "NO_BROWSER": "1",
            "CODEX_CONFIG": json.dumps(settings),
            "DEFAULT_AUTH_REQUEST": json.dumps(
                {"methodId": "gateway", "_meta": {"gateway": gateway}}
            ),
        },
        wire="/responses",
    )


def copilot(home: Path, model: str, mcp: str) -> Recipe:
    """GitHub Copilot's agent with a model of one's own; asks before tools that write."""
    return Recipe(
        [*_program(MORE, "copilot"), "--acp"],
        _base(home)
        | {
            "COPILOT_PROVIDER_BASE_URL": f"{model}/v1",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_WIRE_API": "completions",
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "scripted",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_HOME": str(home / ".copilot"),
        },
    )


RECIPES: dict[str, Callable[[Path, str, str], Recipe]] = {
    recipe.__name__: recipe for recipe in (claude, pi, codex, copilot)
}
