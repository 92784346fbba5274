"""Which node an agent gets: the machine's where it is new enough, else one of those pinned."""

import os
from pathlib import Path

import pytest

from bridge.agent.installed import node_directory
from bridge.agent.node import PINNED, check, machine, wanted
from bridge.agent.versions import numbers
from bridge.errors import BridgeError
from bridge.io.process import Family

pytestmark = pytest.mark.anyio


def node(folder: Path, text: str) -> dict[str, str]:
    """An environment whose node is this script."""
    path = folder / "node"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return {"PATH": str(folder)}


@pytest.mark.parametrize(
    ("there", "oldest", "version"),
    [
        ("v20.20.2", "", ""),
        ("v20.20.2", "20", ""),
        ("v22.19.0", "22.19", ""),
        ("v22.18.9", "22.19", "22.23.3"),
        ("v20.20.2", "22.19", "22.23.3"),
        ("v22.19.0", "24.16", "24.21.0"),
        ("v26.1.0", "24.16", ""),
    ],
)
async def test_a_node_is_brought_only_where_the_machines_is_too_old(
    tmp_path: Path, there: str, oldest: str, version: str
) -> None:
    assert await wanted(oldest, node(tmp_path, f"echo {there}"), Family()) == version


async def test_without_a_node_the_oldest_that_will_do_is_brought(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path)}
    assert await machine(environment, Family()) == ""
    assert await wanted("20", environment, Family()) == PINNED[0]
    assert await machine(node(tmp_path, "exit 1"), Family()) == ""


async def test_a_node_that_nobody_tried_is_not_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BridgeError, match="node 99 or newer is needed, and npm has none"):
        await wanted("99", {"PATH": str(tmp_path)}, Family())
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Darwin", "", "", "", "arm64")))
    with pytest.raises(BridgeError, match="node 22 or newer is needed, and npm has none"):
        await wanted("22", {"PATH": str(tmp_path)}, Family())


async def test_a_node_from_npm_is_tried_before_an_agent_is(tmp_path: Path) -> None:
    where = {"BRIDGE_AGENTS_DIR": str(tmp_path)}
    directory = node_directory("22.23.3", where)
    directory.mkdir(parents=True)
    node(directory, "echo v22.23.3")
    await check("22.23.3", where, Family())
    node(directory, "exit 127")
    with pytest.raises(BridgeError, match="does not run on this machine"):
        await check("22.23.3", where, Family())


async def test_the_pinned_ones_are_in_order() -> None:
    assert list(PINNED) == sorted(PINNED, key=numbers)
