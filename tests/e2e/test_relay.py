"""Clients of other makers talk to real agents through the relay, and notice nothing of it.

A byte recorder stands at each end of the relay; what they kept is compared byte for byte.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridge.trace.reader import Event, read
from tests.peers.host import Host
from tests.peers.install import install
from tests.peers.node_agents import PEERS, RECIPES, Recipe
from tests.peers.servers import Server

pytestmark = pytest.mark.peers
BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
HERE = Path(__file__).parents[1] / "peers"
NODE_CLIENTS = PEERS / "node-clients/node_modules"
MORE = [pytest.param(name, marks=pytest.mark.e2e) for name in ("codex", "copilot")]
PROMPTS = ["hello there", 'USE_TOOL Bash {"command": "echo from-the-shell"}']


def python_sdk(recipe: Recipe, meta: dict[str, Any], agent: list[str]) -> list[str]:
    install("reference")
    python = str(PEERS / "reference/bin/python")
    return [python, str(HERE / "clients/python_sdk.py"), json.dumps(meta), *PROMPTS, "--", *agent]


def typescript_sdk(recipe: Recipe, meta: dict[str, Any], agent: list[str]) -> list[str]:
    install("node-clients")
    sdk = str(NODE_CLIENTS / "@agentclientprotocol/sdk")
    script = str(HERE / "clients/typescript_sdk.mjs")
    return ["node", script, sdk, json.dumps(meta), *PROMPTS, "--", *agent]


def acpx(recipe: Recipe, meta: dict[str, Any], agent: list[str]) -> list[str]:
    install("node-clients")
    program = ["node", str(NODE_CLIENTS / ".bin/acpx"), "--approve-all", "--format", "quiet"]
    return [*program, "--agent", " ".join(agent), "exec", PROMPTS[0]]


CLIENTS: list[Callable[[Recipe, dict[str, Any], list[str]], list[str]]] = [
    python_sdk,
    typescript_sdk,
    acpx,
]


def tapped(name: Path, command: list[str]) -> list[str]:
    return [sys.executable, "-I", "-S", str(HERE / "wiretap.py"), str(name), "--", *command]


def outcome(command: list[str], recipe: Recipe, folder: Path) -> str:
    folder.mkdir(exist_ok=True)
    ended = subprocess.run(
        command,
        capture_output=True,
        cwd=folder,
        env=os.environ | recipe.environment,
        timeout=120,
        text=True,
    )
    assert ended.returncode == 0, f"{ended.returncode}\n{ended.stdout}\n{ended.stderr[-3000:]}"
    return ended.stdout


@pytest.mark.parametrize("name", ["claude", "pi", *MORE])
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_client_and_an_agent_meet_unchanged(
    client: Callable[[Recipe, dict[str, Any], list[str]], list[str]],
    name: str,
    tmp_path: Path,
    model: Server,
    tools: Server,
) -> None:
    recipe = RECIPES[name](tmp_path / "home", model.url, tools.url)
    meta = recipe.config.get("session_meta", {})
    trace = tmp_path / "run.trace.ndjson"
    relay = [BRIDGE, "acp", "--record", str(trace), "--"]
    inner = tapped(tmp_path / "inner", recipe.command)
    outer = tapped(tmp_path / "outer", [*relay, *inner])
    direct = outcome(client(recipe, meta, recipe.command), recipe, tmp_path / "work")
    relayed = outcome(client(recipe, meta, outer), recipe, tmp_path / "work")
    assert relayed == direct
    for end in ("in", "out"):
        ours = (tmp_path / f"outer.{end}").read_bytes()
        assert ours == (tmp_path / f"inner.{end}").read_bytes()
        assert len(ours) > 500
    events = [item for item in read(str(trace)) if isinstance(item, Event)]
    for end, direction in (("in", "out"), ("out", "in")):
        recorded = [event for event in events if (event.ch, event.dir) == ("acp", direction)]
        lines = (tmp_path / f"outer.{end}").read_bytes().split(b"\n")
        assert len(recorded) == len([line for line in lines if line])


@pytest.mark.e2e
@pytest.mark.parametrize("active", [False, True], ids=["transparent", "active"])
@pytest.mark.parametrize("name", ["claude", "codex"])
def test_version_2_passes_with_a_real_client_on_one_side_and_a_real_agent_on_the_other(
    name: str, active: bool, tmp_path: Path, model: Server, tools: Server
) -> None:
    recipe = RECIPES[name](tmp_path / "home", model.url, tools.url)
    trace = tmp_path / "run.trace.ndjson"
    options = ["--policy", "allow", "--mcp-proxy", "auto"] if active else []
    inner = tapped(tmp_path / "inner", recipe.command)
    relay = [BRIDGE, "acp", *options, "--record", str(trace), "--", *inner]
    command = tapped(tmp_path / "outer", relay)
    work = tmp_path / "work"
    work.mkdir()
    servers = {"mcp_urls": {"tiny": tools.url}} if recipe.takes_mcp else {}
    with Host(work, environment=recipe.environment) as host:
        host.hello()
        config = recipe.config | servers | {"command": command, "protocol_version": 2}
        opened = host.call("open", 60, config=config)
        assert opened["result"]["protocol_version"] == 2, opened
        for said in ("SAY good morning", 'USE_TOOL echo {"message": "hi"}'):
            turn = host.prompt(None, said, seconds=60)
            assert turn["ok"] is True, turn
        assert "echo: hi" in turn["result"]["reply"]
        host.shutdown()
    inner_lines, outer_lines = (
        {end: (tmp_path / f"{name}.{end}").read_bytes().splitlines() for end in ("in", "out")}
        for name in ("inner", "outer")
    )
    if active:
        # The policy's: its client never hears of these.
        mine = [line for line in inner_lines["out"] if b'"session/request_permission"' in line]
        ids = [json.loads(line)["id"] for line in mine]
        assert ids or name == "codex"
        inner_lines["out"] = [line for line in inner_lines["out"] if line not in mine]
        answers = [json.loads(line) for line in inner_lines["in"]]
        inner_lines["in"] = [
            line
            for line, answer in zip(inner_lines["in"], answers, strict=True)
            if "method" in answer or answer["id"] not in ids
        ]
    for end in ("in", "out"):
        pairs = list(zip(outer_lines[end], inner_lines[end], strict=True))
        changed = [line for line, other in pairs if line != other]
        assert len(pairs) > 3
        assert all(b'"session/new"' in line for line in changed)
        assert bool(changed) is (active and end == "in" and bool(servers))
    checked = subprocess.run(
        [BRIDGE, "trace", "check", "--least", "warning", str(trace)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.stdout.startswith("0 error"), checked.stdout
