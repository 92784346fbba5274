"""What is looked at on a machine, and what is said of it."""

import json
import os
from pathlib import Path

from bridge.agent.checkup import Check, checks
from bridge.agent.installed import READY, Ready, place
from bridge.agent.profile import load
from bridge.wire import codec


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def package(folder: Path, name: str, version: str, command: str) -> Path:
    """A package as npm lays it out, its command linked from a bin directory."""
    home = folder / "node_modules" / name
    home.mkdir(parents=True)
    (home / "package.json").write_text(json.dumps({"name": name, "version": version}))
    target = program(home / "dist", "index.js", "exit 0")
    bin_folder = folder / "bin"
    bin_folder.mkdir(exist_ok=True)
    (bin_folder / command).symlink_to(target)
    return bin_folder


def found(**environment: str) -> dict[str, Check]:
    bare = {"HOME": "/nonexistent"}
    return {check.name: check for check in checks(bare | environment)}


def test_this_machine_has_what_the_bridge_needs() -> None:
    state = {name: check.state for name, check in found(PATH=os.environ["PATH"]).items()}
    for name in ("python", "libraries", "uvloop", "loopback", "temporary files"):
        assert state[name] == "ok"


def test_without_node_the_way_to_it_is_told(tmp_path: Path) -> None:
    state = found(PATH=str(tmp_path))
    for name in ("node", "npm", "agents"):
        assert state[name].state == "warn"
        assert state[name].mend
    assert "npm install" in state["node"].mend


def test_an_old_node_is_told(tmp_path: Path) -> None:
    program(tmp_path, "node", "echo v18.1.0")
    state = found(PATH=f"{tmp_path}:/bin:/usr/bin")
    assert state["node"].state == "warn"
    assert "18.1.0" in state["node"].words


def test_agents_on_the_path_are_told_with_their_versions(tmp_path: Path) -> None:
    folder = package(
        tmp_path, "@agentclientprotocol/claude-agent-acp", "0.101.0", "claude-agent-acp"
    )
    program(folder, "node", "echo v22.1.0")
    state = found(PATH=f"{folder}:/bin:/usr/bin")
    assert state["agent claude-code"].state == "ok"
    assert state["agent claude-code"].words.startswith("0.101.0 (")
    assert "agents" not in state


def test_a_bad_version_is_told_with_the_reason_and_the_command(tmp_path: Path) -> None:
    name = "@agentclientprotocol/claude-agent-acp"
    folder = package(tmp_path, name, "0.50.0", "claude-agent-acp")
    check = found(PATH=f"{folder}:/bin:/usr/bin")["agent claude-code"]
    assert check.state == "warn"
    assert "0.50.0" in check.words
    assert "steering" in check.words
    assert check.mend == "acp-mcp-bridge agents install claude-code"


def test_a_package_that_nobody_should_take_any_more_is_told(tmp_path: Path) -> None:
    folder = package(tmp_path, "@zed-industries/claude-code-acp", "0.12.0", "claude-code-acp")
    check = found(PATH=f"{folder}:/bin:/usr/bin")["agent claude-code-acp"]
    assert check.state == "warn"
    assert "no longer kept" in check.words


def test_an_agent_that_needs_a_newer_node_is_told(tmp_path: Path) -> None:
    folder = package(tmp_path, "openclaw", "2026.9.6", "openclaw")
    program(folder, "node", "echo v22.1.0")
    check = found(PATH=f"{folder}:/bin:/usr/bin")["agent openclaw"]
    assert check.state == "warn"
    assert "needs node 24" in check.words


def test_a_program_of_no_package_has_no_version(tmp_path: Path) -> None:
    program(tmp_path, "pi-acp", "")
    program(tmp_path, "node", "echo v26.1.0")
    check = found(PATH=f"{tmp_path}:/bin:/usr/bin")["agent pi"]
    assert (check.state, check.words) == ("ok", f"unknown version ({tmp_path}/pi-acp)")


def install(environment: dict[str, str], packages: dict[str, str], node: str = "") -> Path:
    prefix = place("pi", packages, environment)
    prefix.mkdir(parents=True)
    (prefix / READY).write_bytes(codec.encode(Ready("pi", packages, node=node)))
    return prefix


def test_what_agents_install_has_is_told(tmp_path: Path) -> None:
    where = {"BRIDGE_AGENTS_DIR": str(tmp_path / "agents")}
    pinned = load("pi", where).install
    assert pinned is not None
    older = dict.fromkeys(pinned.packages, "0.0.1")
    install(where, older)
    program(tmp_path, "node", "echo v26.1.0")
    where["PATH"] = f"{tmp_path}:/bin:/usr/bin"
    check = found(**where)["agent pi"]
    assert check.state == "warn"
    assert check.words.startswith("0.0.1@0.0.1 is installed; pinned is ")
    assert check.mend == "acp-mcp-bridge agents install pi"
    prefix = install(where, pinned.packages)
    check = found(**where)["agent pi"]
    assert check.state == "ok"
    assert str(prefix) in check.words
    program(tmp_path, "node", "echo v20.1.0")
    check = found(**where)["agent pi"]
    assert check.state == "warn"
    assert "20.1.0 is first on PATH" in check.words


def test_a_profile_that_is_broken_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "acp-mcp-bridge/agents"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text("name = ")
    check = found(PATH=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path))["agent mine"]
    assert check.state == "warn"
    assert "not TOML" in check.words
