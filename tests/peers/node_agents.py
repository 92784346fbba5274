"""How each node agent is started against loopback servers only, without a daemon that would do it:
its profile, filled in with the installs of `make peers` and the servers' own addresses."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bridge.agent import profile, rendering
from bridge.agent.endpoint import Endpoint, wanted
from bridge.agent.rendering import Inputs, Places

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".peers"
NODE = PEERS / "node/node_modules"
MORE = PEERS / "node-more/node_modules"
HEAVY = PEERS / "node-heavy/node_modules"
REST = PEERS / "node-rest/node_modules"
PATHS = {
    "chat": "/chat/completions",
    "responses": "/responses",
    "anthropic": "/messages",
    "gemini": ":streamGenerateContent",
}


def node_bin() -> str:
    """The pinned node's directory, or nothing where npm has no binary for this machine."""
    found = sorted(NODE.glob("node-linux-*/bin/node"))
    return str(found[0].parent) if found else ""


def node_version(modules: Path) -> str:
    """That of the node that agents in this directory run on: its own, else the pinned one."""
    own = sorted(modules.glob("node-linux-*/package.json"))
    found = own or sorted(NODE.glob("node-linux-*/package.json"))
    return json.loads(found[0].read_text())["version"] if found else "of the machine"


@dataclass(frozen=True)
class Recipe:
    """A node agent, ready to be started with this environment by whoever speaks ACP."""

    command: list[str]
    environment: dict[str, str]
    config: dict[str, Any] = field(default_factory=dict)
    """What its prompts' config has beside the command."""
    wire: str = "/chat/completions"
    """The path of the model wire that it speaks."""
    takes_mcp: bool = True
    """Whether MCP servers reach it through ACP."""


def base(home: Path) -> dict[str, str]:
    """No key, no proxy and no home of the machine's own."""
    home.mkdir(parents=True, exist_ok=True)
    return {"HOME": str(home), "PATH": f"{node_bin()}:{os.environ['PATH']}", "NO_COLOR": "1"}


def recipe(name: str, modules: Path, home: Path, model: str, mcp: str) -> Recipe:
    """By a profile's name; its state is in `home`. `model`, `mcp`: the servers' URLs."""
    found = profile.load(name, {"HOME": str(home)})
    wire = next(iter(found.wires))
    url = wanted(f"{model}/v1", wire, found.wires[wire])
    state = home / "state"
    server = {"type": "http", "name": "tiny", "url": mcp, "headers": []}
    rendered = rendering.render(
        found,
        Inputs(
            Endpoint(wire, url, "dummy", "scripted"),
            state,
            str(home),
            "",
            lambda: Places(modules / ".bin"),
            servers=[server],
        ),
    )
    assert Path(rendered.argv[0]).exists(), f"{rendered.argv}: run `make peers` or `make e2e`"
    for file in rendered.files:
        path = state / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(0o755 if file.executable else 0o644)
    config = {"session_meta": rendered.meta} if rendered.meta else {}
    takes_mcp = found.mcp.via == "acp"
    environment = base(home) | rendered.environment
    return Recipe(rendered.argv, environment, config, PATHS[wire], takes_mcp)


claude = partial(recipe, "claude-code", NODE)
pi = partial(recipe, "pi", NODE)
codex = partial(recipe, "codex", MORE)
copilot = partial(recipe, "copilot", MORE)
RECIPES: dict[str, Callable[[Path, str, str], Recipe]] = {
    "claude": claude,
    "pi": pi,
    "codex": codex,
    "copilot": copilot,
}
