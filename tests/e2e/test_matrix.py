"""Every agent in every scenario (tests/e2e/matrix): each cell comes to what the table says."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.matrix import pages, results
from tests.e2e.matrix.agents import AGENTS, LEFT_OUT
from tests.e2e.matrix.desk import Room
from tests.e2e.matrix.runner import SCENARIOS, play

FIRST = {"turns", "mcp", "cancel_stream", "close", "close_in_turn"}
OFTEN = {"pi": FIRST, "claude-code": FIRST | {"allow", "deny"}}
"""What is played on every commit."""


def cells() -> Iterator[Any]:
    """Those that the table has: of the slowest agents not all."""
    for name, result in results.read().items():
        agent = AGENTS[name]
        for row in result["cells"]:
            first = row in OFTEN.get(name, ())
            marks = [pytest.mark.peers if first else pytest.mark.e2e]
            marks += [pytest.mark.heavy] * agent.heavy
            yield pytest.param(name, row, marks=marks, id=f"{name}-{row}")


@pytest.fixture(scope="module")
def room() -> Iterator[Room]:
    # Short: agents make sockets in it.
    with tempfile.TemporaryDirectory(prefix="matrix-") as place, Room(Path(place)) as room:
        yield room


@pytest.mark.parametrize("name, row", list(cells()))
def test_a_cell_comes_to_what_the_table_says(room: Room, name: str, row: str) -> None:
    cell = play(room, AGENTS[name], SCENARIOS[row])
    expected = {results.verdict(name, row)}
    if row in AGENTS[name].nature:  # what an agent does not do well, it may do now and then
        expected |= {"works", "fails"}
    assert cell.verdict in expected, cell.story or cell.note


def test_what_fails_in_the_table_is_explained() -> None:
    failing = [
        (name, row)
        for name, result in results.read().items()
        for row, cell in result["cells"].items()
        if cell["verdict"] == "fails"
    ]
    assert [(name, row) for name, row in failing if row not in AGENTS[name].nature] == []


def test_the_pages_are_those_of_the_results() -> None:
    found = results.read()
    assert set(found) <= set(AGENTS)
    assert not set(AGENTS) & set(LEFT_OUT)
    for path, text in pages.every(found).items():
        assert (results.ROOT / "docs" / path).read_text() == text, path
    for result in found.values():
        assert set(result["cells"]) <= set(SCENARIOS)
