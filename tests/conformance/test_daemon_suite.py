"""The daemon suite finds every fault that is planted in a daemon, and none in good ones."""

import sys
from collections.abc import Iterable
from pathlib import Path

import anyio
import pytest

from conformance.check import Outcome
from conformance.daemon.suite import SUITE, play
from tests.conformance.together import each

Found = dict[str, Outcome]

PLANTED = Path(__file__).with_name("planted_daemon.py")
SILENT = {
    "framing.packets",
    "framing.lines",
    "framing.bytes",
    "framing.joined",
    "framing.not-a-request",
    "framing.oversize",
    "b.ids",
    "c.sessions",
    "c.steer-send",
    "c.duplicate-id",
    "c.cancel-permission",
    "c.events",
    "end.input",
    "end.interrupt",
    "end.kill",
    "end.deaf",
    "end.stdout",
}
"""Faults that show in something that does not come: their time-out is short."""
NAMES = [check.id.removeprefix("daemon.") for check in SUITE.checks]


async def outcomes(command: list[str], only: Iterable[str], timeout: float) -> Found:
    wanted = {f"daemon.{one}" for one in only}
    checks = [check for check in SUITE.checks if check.id in wanted]
    found = await play(command, checks, timeout)
    return {outcome.check.id.removeprefix("daemon."): outcome for outcome in found}


def planted(fault: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(PLANTED), fault]


def test_a_good_daemon_passes_everything() -> None:
    found = anyio.run(outcomes, planted("-"), NAMES, 30)
    assert {name: one for name, one in found.items() if one.verdict != "passed"} == {}


@pytest.fixture(scope="module")
def findings() -> dict[str, Found]:
    """What each check finds in the daemon that has its fault."""

    async def run(name: str) -> Found:
        return await outcomes(planted(name), [name], 0.7 if name in SILENT else 30)

    return each(NAMES, run)


@pytest.mark.parametrize("name", NAMES)
def test_a_planted_fault_is_found_by_its_check(name: str, findings: dict[str, Found]) -> None:
    found = findings[name]
    assert found[name].verdict == "failed", found[name]
