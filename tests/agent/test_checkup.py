"""What is looked at on a machine, and what is said of it."""

import json
import os
from pathlib import Path

import pytest

from bridge.agent.checkup import Check, checks, numbers, package_version, within


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
    return {check.name: check for check in checks(environment)}


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
    assert state["agent claude"].state == "ok"
    assert state["agent claude"].words.startswith("0.101.0 (")
    assert "agents" not in state


def test_a_bad_version_is_told_with_the_reason_and_the_command(tmp_path: Path) -> None:
    folder = package(tmp_path, "@zed-industries/claude-code-acp", "0.12.0", "claude-code-acp")
    check = found(PATH=f"{folder}:/bin:/usr/bin")["agent claude-old"]
    assert check.state == "warn"
    assert "no longer kept" in check.words
    assert "npm install --global" in check.mend


def test_an_agent_that_needs_a_newer_node_is_told(tmp_path: Path) -> None:
    folder = package(tmp_path, "openclaw", "2026.9.6", "openclaw")
    program(folder, "node", "echo v22.1.0")
    check = found(PATH=f"{folder}:/bin:/usr/bin")["agent openclaw"]
    assert check.state == "warn"
    assert "needs node 24" in check.words


def test_a_command_of_no_package_has_no_version(tmp_path: Path) -> None:
    assert package_version(program(tmp_path, "x", ""), "some-package") is None


@pytest.mark.parametrize(
    ("version", "bound", "inside"),
    [
        ("0.63.9", "<0.64", True),
        ("0.64.0", "<0.64", False),
        ("0.101.0", "<0.64", False),
        ("7.8.1", "=7.8.1", True),
        ("7.8.2", "=7.8.1", False),
        ("1.0.0-rc.1", "<1.0.1", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, bound: str, inside: bool) -> None:
    assert within(version, bound) is inside


def test_a_version_without_numbers_is_the_oldest() -> None:
    assert numbers("latest") == (0,)
