"""Plays one cell: one agent, one scenario, a desk of its own."""

import time
import traceback
from dataclasses import dataclass, field
from subprocess import SubprocessError
from typing import Literal

from tests.e2e.matrix import faults, measures, stops, tools, turns
from tests.e2e.matrix.agents import Agent
from tests.e2e.matrix.desk import NotOffered, NotRun, Room
from tests.e2e.matrix.scenario import Scenario

Verdict = Literal["works", "not offered", "not run", "fails"]
SCENARIOS = {
    name: row
    for module in (turns, tools, stops, faults, measures)
    for name, row in vars(module).items()
    if isinstance(row, Scenario)
}
"""Every row by its name, in the order of the table."""


@dataclass
class Cell:
    """What came of it. `note`: why, or what was seen; `story`: a failure whole, for a person."""

    verdict: Verdict
    note: str = ""
    seconds: float = 0.0
    story: str = field(default="", repr=False)


def play(room: Room, agent: Agent, scenario: Scenario) -> Cell:
    """The cell; a failure's first line is its note."""
    began = time.monotonic()
    cell = _play(room, agent, scenario)
    cell.seconds = round(time.monotonic() - began, 1)
    return cell


def _play(room: Room, agent: Agent, scenario: Scenario) -> Cell:
    try:
        with room.desk(agent) as desk:
            note = scenario.play(desk)
            desk.end()
    except NotOffered as why:
        return Cell("not offered", str(why))
    except NotRun as why:
        return Cell("not run", str(why))
    except (AssertionError, LookupError, TypeError, ValueError, SubprocessError) as error:
        words = str(error).partition("\n")[0] or type(error).__name__
        return Cell("fails", words[:300], story=traceback.format_exc())
    return Cell("works", note)
