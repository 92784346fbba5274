"""`agents` on the command line: what is listed, shown, installed and removed."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.agent.profile import names
from tests.peers.registry import Package, Registry, npm_registry

BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
TINY = """
name = "tiny"
title = "a tiny agent"
[install]
packages = { tiny = "1.0.0", tiny-acp = "0.1.0" }
[launch]
command = ["${bin}/tiny-acp"]
[launch.environment]
TINY_KEY = "${model.key}"
[wires.chat]
"""
LOCAL = """
name = "local"
title = "a program of one's own"
[launch]
command = ["local-agent"]
[wires.chat]
"""


class Desk:
    """A home with two profiles of the user's own, and a registry."""

    def __init__(self, folder: Path, registry: Registry) -> None:
        self.registry = registry
        self.profiles = folder / ".config/acp-mcp-bridge/agents"
        self.profiles.mkdir(parents=True)
        (self.profiles / "tiny.toml").write_text(TINY)
        (self.profiles / "local.toml").write_text(LOCAL)
        self.installs = folder / ".local/share/acp-mcp-bridge/agents/tiny"
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("XDG_", "BRIDGE_", "OPENAI_"))
        }
        self.environment = kept | registry.environment(folder) | {"HOME": str(folder)}

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [BRIDGE, "agents", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            env=self.environment,
        )

    def listed(self, *arguments: str) -> dict[str, dict[str, object]]:
        ended = self.run("list", "--json", *arguments)
        assert ended.returncode == 0, ended.stderr
        return {row["name"]: row for row in json.loads(ended.stdout)}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with npm_registry() as registry:
        registry.packages += [
            Package("tiny", "1.0.0", {}),
            Package("tiny", "1.2.0", {}),
            Package("tiny-acp", "0.1.0", {"acp.js": ""}, {"bin": "acp.js"}),
        ]
        yield Desk(tmp_path, registry)


def test_an_agent_is_listed_installed_and_removed(desk: Desk) -> None:
    tiny = desk.listed()["tiny"]
    assert (tiny["ready"], tiny["installed"]) == (False, [])
    for options in ([], ["--version", "1.2.0"]):
        ended = desk.run("install", "tiny", *options)
        assert ended.returncode == 0, ended.stderr
    tiny = desk.listed()["tiny"]
    assert tiny["ready"] is True
    assert tiny["packages"] == {"tiny": "1.0.0", "tiny-acp": "0.1.0"}
    assert [Path(item["prefix"]).name for item in tiny["installed"]] == [
        "1.0.0@0.1.0",
        "1.2.0@0.1.0",
    ]
    lines = [line.split() for line in desk.run("list").stdout.splitlines()]
    assert lines[0] == ["agent", "pinned", "installed", "package"]
    assert ["tiny", "1.0.0", "1.0.0,", "1.2.0", "tiny"] in lines
    assert ["local", "(not", "from", "npm)"] in lines
    ended = desk.run("remove", "tiny", "--version", "1.0.0")
    assert ended.stdout == f"{desk.installs}/1.0.0@0.1.0\n"
    assert desk.listed()["tiny"]["ready"] is False
    assert desk.run("remove", "tiny").stdout == f"{desk.installs}/1.2.0@0.1.0\n"
    assert [entry.name for entry in desk.installs.iterdir()] == [".lock"]
    ended = desk.run("remove", "tiny")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "agent tiny is not installed" in ended.stderr


def test_all_there_are_can_be_installed_and_the_newest_asked_for(desk: Desk) -> None:
    for file in names({}):
        (desk.profiles / f"{file}.toml").write_text(LOCAL.replace('"local"', f'"{file}"'))
    ended = desk.run("install", "--all")
    assert (ended.returncode, ended.stdout) == (0, f"{desk.installs}/1.0.0@0.1.0\n"), ended.stderr
    rows = desk.listed("--newest")
    assert rows["tiny"]["newest"] == {"tiny": "1.2.0", "tiny-acp": "0.1.0"}
    assert rows["local"]["newest"] == {}


def test_every_agent_of_this_release_is_listed(desk: Desk) -> None:
    assert set(desk.listed()) == {*names({}), "tiny", "local"}


@pytest.mark.parametrize("name", names({}))
def test_each_recipe_can_be_shown_and_its_key_is_masked(desk: Desk, name: str) -> None:
    key = "sk-a-secret-of-the-user"
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        desk.environment[variable] = key
    ended = desk.run("show", name, "--json")
    assert ended.returncode == 0, ended.stderr
    fields = json.loads(ended.stdout)
    assert fields["name"] == name
    assert fields["command"]
    assert key not in ended.stdout


def test_a_recipe_is_shown_for_people(desk: Desk) -> None:
    text = desk.run("show", "tiny", "--adapter-version", "0.2.0").stdout
    assert text.startswith("tiny: a tiny agent\n")
    assert "tiny-acp 0.2.0" in text
    assert "TINY_KEY=***" in text


def test_of_several_agents_one_failure_keeps_none_of_the_others(desk: Desk) -> None:
    other = TINY.replace('"tiny"', '"broken"').replace("0.1.0", "0.9.9")
    (desk.profiles / "broken.toml").write_text(other)
    ended = desk.run("install", "broken", "tiny")
    assert ended.returncode == 1
    assert "broken: npm could not install" in ended.stderr
    assert desk.listed()["tiny"]["ready"] is True


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["install"], "name the agents, or say --all"),
        (["install", "tiny", "--all"], "name the agents, or say --all"),
        (["install", "nonsense"], "no agent profile 'nonsense'"),
        (["install", "local"], "has no packages"),
        (["install", "local", "--version", "1.0.0"], "--version: agent local has 0 packages"),
        (["install", "tiny", "local", "--version", "1.0.0"], "one agent at a time"),
        (["install", "tiny", "--package", "tiny"], "PACKAGE=VERSION"),
        (["install", "tiny", "--package", "other=1.0.0"], "no package 'other'"),
        (["install", "tiny", "--adapter-version", "1.x"], "an exact one is needed"),
        (["show", "nonsense"], "no agent profile 'nonsense'"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(desk: Desk, arguments: list[str], words: str) -> None:
    ended = desk.run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    [line] = ended.stderr.splitlines()
    assert words in line


def test_each_action_explains_itself(desk: Desk) -> None:
    whole = desk.run("--help").stdout
    for action in ("list", "show", "install", "run", "remove"):
        assert f"    {action} " in whole
        ended = desk.run(action, "--help")
        assert ended.returncode == 0
        assert ended.stdout.startswith(f"usage: acp-mcp-bridge agents {action} ")
