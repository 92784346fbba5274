"""`python -m tests.e2e.matrix [AGENT...]`: plays the agents' cells, writes the tables and pages.

Without names: every agent that is installed. `--rows` plays some scenarios only, and leaves the
other cells as they are. With `--pages` nothing is played: the pages are made anew from
docs/agents/matrix.json.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.e2e.matrix import pages, results
from tests.e2e.matrix.agents import AGENTS, Agent
from tests.e2e.matrix.desk import Room
from tests.e2e.matrix.runner import SCENARIOS, Cell, play


def column(agent: Agent, rows: Iterable[str]) -> dict[str, Cell]:
    """An agent's cells, told as they come."""
    cells: dict[str, Cell] = {}
    with tempfile.TemporaryDirectory(prefix="matrix-") as place, Room(Path(place)) as room:
        for name in rows:
            cell = cells[name] = play(room, agent, SCENARIOS[name])
            print(f"{agent.name:12} {name:14} {cell.seconds:6} {cell.verdict}  {cell.note}")
            sys.stdout.flush()
            sys.stderr.write(cell.story)
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.matrix")
    parser.add_argument("agents", nargs="*", metavar="AGENT")
    parser.add_argument("--rows", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--pages", action="store_true", help="make the pages anew, play nothing")
    arguments = parser.parse_args()
    if unknown := set(arguments.agents) - set(AGENTS):
        parser.error(f"no agent {', '.join(sorted(unknown))}; there are {', '.join(AGENTS)}")
    chosen = [AGENTS[name] for name in arguments.agents]
    if not chosen and not arguments.pages:
        chosen = [agent for agent in AGENTS.values() if agent.installed]
    found, unexplained = results.read(), 0
    for agent in chosen:
        cells = column(agent, arguments.rows)
        unexplained += sum(c.verdict == "fails" and n not in agent.nature for n, c in cells.items())
        found[agent.name] = results.of(agent, cells, found.get(agent.name))
        results.write(found)
    for path, text in pages.every(found).items():
        (results.ROOT / "docs" / path).write_text(text)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
