"""The agents of the matrix: their profile's name, and what a scenario must know to drive them."""

import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bridge.agent import profile
from protocol_schemas.profile import Profile
from tests.peers.node_agents import HEAVY, MORE, NODE, PATHS, REST, base


@dataclass(frozen=True)
class Agent:
    """One column. `shell`: its shell tool's name and that tool's argument for the command line.

    `wait`: the MCP server's tool of that name, so that no tool of its own is meant. `side`: a model
    call of its own that each session has. `nature`: what it cannot do, by scenario, and why; a cell
    may only fail if it stands here.
    """

    name: str
    modules: Path
    shell: tuple[str, str]
    heavy: bool = False
    wait: str = "wait"
    side: str | None = None
    patience: float = 60.0
    nature: dict[str, str] = field(default_factory=dict)

    @cached_property
    def profile(self) -> Profile:
        return profile.load(self.name, {})

    @property
    def wire(self) -> str:
        """The one it is driven on: its profile's first."""
        return next(iter(self.profile.wires))

    @property
    def path(self) -> str:
        """Where that wire's requests go."""
        return PATHS[self.wire]

    @property
    def versions(self) -> dict[str, str]:
        """Its packages, as they are installed."""
        install = self.profile.install
        assert install is not None
        return {
            name: json.loads((self.modules / name / "package.json").read_text())["version"]
            for name in install.packages
        }

    @property
    def installed(self) -> bool:
        install = self.profile.install
        return install is not None and all((self.modules / p).exists() for p in install.packages)

    def environment(self, home: Path) -> dict[str, str]:
        """The daemon's: this agent's programs are on its PATH, and nothing tells of a model."""
        found = base(home)
        return found | {"PATH": f"{self.modules / '.bin'}{os.pathsep}{found['PATH']}"}

    def config(self, model_url: str) -> dict[str, Any]:
        """What the host says of the agent and of its model."""
        url = model_url if self.wire == "gemini" else f"{model_url}/v1"
        model = {"base_url": url, "name": "scripted", "api_key": "dummy", "wire": self.wire}
        return {"agent": self.name, "model": model}


AGENTS = {
    agent.name: agent
    for agent in (
        Agent("pi", NODE, ("bash", "command")),
        Agent("codex", MORE, ("exec_command", "cmd"), side="title"),
        Agent("claude-code", NODE, ("Bash", "command")),
        Agent("copilot", MORE, ("bash", "command")),
        Agent("kimi-code", HEAVY, ("bash", "command"), heavy=True),
        Agent(
            "gemini",
            REST,
            ("run_shell_command", "command"),
            heavy=True,
            nature={
                "load": "another process of it does not find the session, more often than not, "
                "though its file is there",
            },
        ),
        Agent("opencode", REST, ("bash", "command"), heavy=True, side="title"),
        Agent(
            "openclaw",
            HEAVY,
            ("exec", "command"),
            heavy=True,
            wait="tiny__wait",
            patience=150,
            nature={
                "resume": "another process of it does not find the session; session/load does",
            },
        ),
    )
}

_NOT_HAD = "its program is no package of npm's and cannot be had here"
LEFT_OUT = {
    "pool": _NOT_HAD,
    "rlm": _NOT_HAD,
    "terminus-2": _NOT_HAD,
    "mini-swe-agent": _NOT_HAD,
}
"""Profiles that are no columns, and why."""
