"""verifiers 0.4's own agent harnesses, on agents that are installed here.

Their installers fetch node, Kimi Code and OpenClaw from addresses that are no registry's, and each
first looks whether what it wants already stands at its fixed place under /var/tmp or /tmp. So a run
gets a /tmp and a /var/tmp of its own (a mount namespace, `PRIVATE`), where the agents of .peers
stand at those places: the harnesses, their installers included, run as they are. What is set in
them is data alone: the versions they ask for, since ours are newer, and NEEDS_CONTAINER, which
keeps them off the subprocess runtime.
"""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.peers.node_agents import MORE, NODE, PEERS, node_bin

HEAVY = PEERS / "node-heavy/node_modules"
HARNESSES = "verifiers.v1.harnesses"

PRIVATE = r"""
set -e
private=$1 bench=$2 checkout=$3
shift 3
exec 3<"$bench" 4<"$checkout"
mount --bind "$private/var/tmp" /var/tmp
mount --bind "$private/tmp" /tmp
mkdir -p "$bench" "$checkout"
mount --no-canonicalize --bind /proc/self/fd/3 "$bench"
mount --no-canonicalize --bind /proc/self/fd/4 "$checkout"
exec 3<&- 4<&-
exec "$@"
"""
"""Run by sh with the private root, the two directories to keep, and a command."""


def in_private(private: Path, bench: Path, checkout: Path) -> list[str]:
    """Before a command: it then sees `private`'s /tmp and /var/tmp, and in them the other two."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    start = ["unshare", "--mount", *user, "sh", "-c", PRIVATE, "private"]
    return [*start, str(private), str(bench), str(checkout)]


@dataclass
class Installed:
    """A harness, its settings, and the files that its installer finds."""

    harness: str
    version: str
    wire: str
    """The path of the model wire that its agent speaks."""
    links: dict[str, Path]
    files: dict[str, str] = field(default_factory=dict)
    copies: dict[str, Path] = field(default_factory=dict)
    pins: dict[str, dict[str, str]] = field(default_factory=dict)
    """Versions that are constants of their modules, by module."""
    model: str = "scripted"
    tool: str = "echo"
    arguments: str = "%s"
    """How the model calls the MCP server's tool `echo`, round the tool's own arguments."""
    model_in_file: bool = False
    """Whether the model's address goes into a file of the agent's, where no daemon sees it."""
    mcp_in_file: bool = False
    """The same of MCP servers."""
    env: dict[str, str] = field(default_factory=dict)
    """What the harness's own `env` setting has."""
    gate: Literal["can", "must", "cannot"] = "can"
    """Whether the harness has verifiers' tool gate, or does nothing without."""

    def echo(self, word: str) -> str:
        """The prompt that makes the scripted model call the tool."""
        return f"USE_TOOL {self.tool} " + self.arguments % json.dumps({"message": word})

    def lay(self, private: Path) -> None:
        """Makes the private root."""
        for place in ("tmp", "var/tmp"):
            (private / place).mkdir(parents=True)

        def at(place: str) -> Path:
            path = private / place.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            return path

        for place, target in self.links.items():
            assert target.exists(), f"{target} is missing: run `make e2e-all`"
            at(place).symlink_to(target)
        for place, source in self.copies.items():
            shutil.copytree(source, at(place), symlinks=True, copy_function=_link)
        for place, text in self.files.items():
            at(place).write_text(text)
            at(place).chmod(0o755)


def _link(source: str, target: str) -> None:
    """A file that is to be replaced, never written into, need not be copied."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _package(modules: Path, name: str) -> dict[str, Any]:
    return json.loads((modules / name / "package.json").read_text())


def _version(modules: Path, name: str) -> str:
    return _package(modules, name)["version"]


def _bins(place: str, **programs: Path) -> dict[str, Path]:
    """Links in a package directory's .bin."""
    return {f"{place}/node_modules/.bin/{name}": target for name, target in programs.items()}


def _node(bin_directory: Path) -> tuple[dict[str, Path], dict[str, dict[str, str]]]:
    """The node that their adapters run on, and the version that their installer then finds."""
    version = json.loads((bin_directory.parent / "package.json").read_text())["version"]
    link = {"/var/tmp/vf-node/bin/node": bin_directory / "node"}
    return link, {f"{HARNESSES}.node": {"NODE_VERSION": version}}


def claude_code() -> Installed:
    links, pins = _node(Path(node_bin()))
    version = _package(NODE, "@anthropic-ai/claude-agent-sdk")["claudeCodeVersion"]
    adapter = _version(NODE, "@agentclientprotocol/claude-agent-acp")
    place = f"/var/tmp/vf-claude-agent-acp-{version}-{adapter}"
    [claude] = (NODE / "@anthropic-ai").glob("claude-agent-sdk-linux-*/claude")
    acp = NODE / ".bin/claude-agent-acp"
    return Installed(
        "claude_code",
        version,
        "/messages",
        links | _bins(f"{place}/packages", **{"claude": claude, "claude-agent-acp": acp}),
        files={f"{place}/.ready": ""},
        # Else MCP tools are hidden at first, and each turn is followed by a call for suggestions.
        env={"ENABLE_TOOL_SEARCH": "false", "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false"},
        pins=pins | {f"{HARNESSES}.claude_code.harness": {"ACP_VERSION": adapter}},
        gate="must",  # this Claude Code else judges each call with a model that it has not
    )


def codex() -> Installed:
    links, pins = _node(Path(node_bin()))
    version = _version(MORE, "@openai/codex")
    adapter = _version(MORE, "@agentclientprotocol/codex-acp")
    place = f"/var/tmp/vf-codex-{version}-{adapter}"
    programs = {name: MORE / ".bin" / name for name in ("codex", "codex-acp")}
    return Installed(
        "codex",
        version,
        "/responses",
        links | _bins(f"{place}/acp", **programs),
        files={f"{place}/.ready": ""},
        pins=pins | {f"{HARNESSES}.codex.harness": {"ACP_VERSION": adapter}},
        mcp_in_file=True,
    )


def pi() -> Installed:
    links, pins = _node(Path(node_bin()))
    place = "/var/tmp/vf-pi/mcp"
    version = _version(NODE, "@earendil-works/pi-coding-agent")
    tools, adapter = _version(MORE, "pi-mcp-adapter"), _version(NODE, "pi-acp")
    programs = {name: NODE / ".bin" / name for name in ("pi", "pi-acp")}
    links[f"{place}/node_modules/pi-mcp-adapter"] = MORE / "pi-mcp-adapter"
    return Installed(
        "pi",
        version,
        "/chat/completions",
        links | _bins(place, **programs),
        files={f"{place}/.versions": f"{version}:{tools}:{adapter}"},
        pins=pins | {f"{HARNESSES}.pi.harness": {"MCP_VERSION": tools, "ACP_VERSION": adapter}},
        model_in_file=True,
        mcp_in_file=True,
    )


def kimi_code() -> Installed:
    start = f'#!/bin/sh\nexec {node_bin()}/node {HEAVY}/.bin/kimi "$@"\n'
    return Installed(
        "kimi_code",
        _version(HEAVY, "@moonshot-ai/kimi-code"),
        "/chat/completions",
        links={},
        files={"/tmp/vf-kimi-code/bin/kimi": start},
    )


def openclaw() -> Installed:
    version = _version(HEAVY, "openclaw")
    place = f"/var/tmp/vf-openclaw-{version}"
    modules = f"{place}/tools/lib/node_modules"
    [node] = HEAVY.glob("node-linux-*/bin/node")
    others = {
        f"{modules}/{entry.name}": entry for entry in HEAVY.iterdir() if entry.name != "openclaw"
    }
    start = f'#!/bin/sh\nexec {place}/tools/node/bin/node {modules}/openclaw/openclaw.mjs "$@"\n'
    return Installed(
        "openclaw",
        version,
        "/chat/completions",
        links={f"{place}/tools/node/bin/node": node} | others,
        files={f"{place}/bin/openclaw": start},
        copies={f"{modules}/openclaw": HEAVY / "openclaw"},  # the harness patches a file of it
        model="vllm/scripted",  # a provider that it comes with, since the harness declares no model
        tool="tool_call",  # it hides the tools of MCP servers behind one that finds and calls them
        arguments='{"id": "tiny__echo", "args": %s}',
        model_in_file=True,
        mcp_in_file=True,
        gate="cannot",
    )


AGENTS: dict[str, Callable[[], Installed]] = {
    agent.__name__: agent for agent in (claude_code, codex, pi, kimi_code, openclaw)
}
