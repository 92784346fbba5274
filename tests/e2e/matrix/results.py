"""The results of runs, kept in docs/agents/matrix.json: a run replaces those of its agents."""

import json
import os
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bridge import __version__
from tests.e2e.matrix.agents import Agent
from tests.e2e.matrix.runner import Cell
from tests.peers.node_agents import node_version

ROOT = Path(__file__).parents[3]
FILE = ROOT / "docs/agents/matrix.json"
Json = dict[str, Any]


def read() -> Json:
    """Every agent's results, by its name."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def verdict(agent: str, scenario: str) -> str | None:
    """What a cell came to when the table was made; None for one that is not in it."""
    return read().get(agent, {}).get("cells", {}).get(scenario, {}).get("verdict")


def of(agent: Agent, cells: dict[str, Cell], before: Json | None) -> Json:
    """An agent's results, with what they are worth: versions, date, machine. Cells that were not
    played now are those of `before`, if it was the same agent."""
    same = before is not None and before["versions"] == agent.versions
    kept = dict(before["cells"]) if before is not None and same else {}
    for name, cell in cells.items():
        kept[name] = asdict(cell)
        del kept[name]["story"]
    return {
        "versions": agent.versions,
        "wire": agent.wire,
        "bridge": __version__,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(agent),
        "cells": kept,
    }


def machine(agent: Agent) -> str:
    """What it ran on, in one line."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    cores = f"{os.cpu_count()} cores at load {os.getloadavg()[0]:.0f}"
    system = f"{platform.system()} {platform.machine()}, {cores}, {memory} GiB"
    return f"{system}, node {node_version(agent.modules)}"


def write(results: Json) -> None:
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
