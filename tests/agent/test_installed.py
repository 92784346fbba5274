"""What counts as an install: a `.ready` that says it is what is asked for, and nothing else."""

from pathlib import Path

import pytest

from bridge.agent.installed import (
    NODE,
    READY,
    Ready,
    every,
    find,
    home,
    node_directory,
    node_packages,
    place,
    require,
)
from bridge.agent.versions import with_packages
from bridge.errors import BridgeError, UsageError
from bridge.wire import codec
from protocol_schemas.profile import Install, Launch, Profile, WireUse

PACKAGES = {"tiny": "1.0.0", "tiny-acp": "0.1.0"}
PROFILE = """
name = "tiny"
title = "tiny"
[install]
packages = { tiny = "1.0.0", tiny-acp = "0.1.0" }
[launch]
command = ["${bin}/tiny-acp"]
[wires.chat]
"""


def agent(install: Install | None) -> Profile:
    launch = Launch(command=["tiny"])
    return Profile(name="tiny", title="", install=install, launch=launch, wires={"chat": WireUse()})


TINY = agent(Install(packages=PACKAGES))


@pytest.fixture
def where(tmp_path: Path) -> dict[str, str]:
    return {"BRIDGE_AGENTS_DIR": str(tmp_path / "agents"), "HOME": str(tmp_path)}


def installed(where: dict[str, str], said: Ready, agent: str = "tiny") -> Path:
    prefix = place(agent, said.packages, where)
    prefix.mkdir(parents=True)
    (prefix / READY).write_bytes(codec.encode(said))
    return prefix


@pytest.mark.parametrize(
    ("environment", "path"),
    [
        ({"BRIDGE_AGENTS_DIR": "/a/b", "XDG_DATA_HOME": "/d"}, "/a/b"),
        ({"XDG_DATA_HOME": "/d", "HOME": "/h"}, "/d/acp-mcp-bridge/agents"),
        ({"XDG_DATA_HOME": "relative", "HOME": "/h"}, "/h/.local/share/acp-mcp-bridge/agents"),
        ({"BRIDGE_AGENTS_DIR": "", "HOME": "/h"}, "/h/.local/share/acp-mcp-bridge/agents"),
    ],
)
def test_installs_live_where_the_user_says(environment: dict[str, str], path: str) -> None:
    assert home(environment) == Path(path)


def test_a_relative_place_is_one_below_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert home({"BRIDGE_AGENTS_DIR": "here"}) == tmp_path / "here"


def test_each_combination_of_versions_has_a_place_of_its_own(where: dict[str, str]) -> None:
    prefix = place("tiny", PACKAGES, where)
    assert prefix == home(where) / "tiny" / "1.0.0@0.1.0"
    assert place("tiny", {**PACKAGES, "tiny-acp": "0.2.0"}, where) != prefix


def test_an_install_is_found_by_its_ready(where: dict[str, str]) -> None:
    prefix = installed(where, Ready("tiny", PACKAGES))
    found = find(TINY, where)
    assert found is not None
    assert (found.prefix, found.node) == (prefix, None)
    assert require(TINY, where, named="tiny") == found


def test_a_directory_without_a_ready_is_none(where: dict[str, str]) -> None:
    place("tiny", PACKAGES, where).mkdir(parents=True)
    assert find(TINY, where) is None


@pytest.mark.parametrize("text", [b"", b'{"agent":"tiny"', b"[]", b'{"agent":"tiny"}'])
def test_a_ready_that_cannot_be_read_is_none(where: dict[str, str], text: bytes) -> None:
    (installed(where, Ready("tiny", PACKAGES)) / READY).write_bytes(text)
    assert find(TINY, where) is None
    assert list(every(where)) == []


@pytest.mark.parametrize(
    "said",
    [
        Ready("tiny", {"other": "1.0.0", "tiny-acp": "0.1.0"}),
        Ready("tiny", PACKAGES, scripts=True),
        Ready("tiny", PACKAGES, node="22.23.3"),
    ],
)
def test_other_packages_other_scripts_and_a_missing_node_are_none(
    where: dict[str, str], said: Ready
) -> None:
    installed(where, said)
    assert find(TINY, where) is None


def test_the_node_that_came_with_it_is_told(where: dict[str, str]) -> None:
    installed(where, Ready("tiny", PACKAGES, node="22.23.3"))
    directory = node_directory("22.23.3", where)
    directory.mkdir(parents=True)
    (directory / "node").touch()
    found = find(TINY, where)
    assert found is not None
    assert found.node == directory
    [package] = node_packages("22.23.3")
    assert directory == home(where) / NODE / "22.23.3" / "node_modules" / package / "bin"


def test_what_is_not_installed_is_told_with_the_command(where: dict[str, str]) -> None:
    installed(where, Ready("tiny", {"tiny": "0.9.0", "tiny-acp": "0.1.0"}))
    folder = Path(where["HOME"]) / ".config/acp-mcp-bridge/agents"
    folder.mkdir(parents=True)
    (folder / "tiny.toml").write_text(PROFILE)
    with pytest.raises(BridgeError) as raised:
        require(TINY, where, named="tiny")
    assert raised.value.code == "spawn_failed"
    assert str(raised.value) == (
        "agent tiny is not installed: tiny 1.0.0, tiny-acp 0.1.0 (there is 0.9.0@0.1.0); "
        "run: acp-mcp-bridge agents install tiny"
    )
    newer = with_packages(TINY, {"tiny-acp": "0.2.0"})
    with pytest.raises(BridgeError, match=r"install tiny --package tiny-acp=0\.2\.0$"):
        require(newer, where, named="tiny")


def test_an_agent_without_packages_is_never_installed(where: dict[str, str]) -> None:
    assert find(agent(None), where) is None
    with pytest.raises(UsageError, match="no packages"):
        require(agent(None), where, named="tiny")


def test_all_whole_installs_are_listed(where: dict[str, str]) -> None:
    assert list(every(where)) == []
    older = Ready("tiny", {"tiny": "0.9.0"})
    prefixes = [installed(where, older), installed(where, Ready("tiny", PACKAGES))]
    place("half", {"half": "1.0.0"}, where).mkdir(parents=True)
    aside = home(where) / "tiny" / ".1.1.0.77.abcd"
    aside.mkdir()
    (aside / READY).write_bytes(codec.encode(older))
    node = installed(where, Ready(NODE, node_packages("22.23.3")), NODE)
    assert [prefix for prefix, _ in every(where)] == [node, *prefixes]
