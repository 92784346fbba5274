"""The client suite finds every fault that is planted in a client, and none in good ones."""

import sys
from collections.abc import Iterable
from pathlib import Path

import anyio
import pytest

from conformance.check import Outcome
from conformance.client.suite import SUITE, play
from tests.conformance.together import each

Found = dict[str, Outcome]

PLANTED = Path(__file__).with_name("planted_client.py")
SILENT = {
    "permission.answered",
    "permission.taken-back",
    "cancel.notification",
    "end.agent",
    "end.leaves-nothing",
}
"""Faults that show in something that does not come: their time-out is short."""
NAMES = [check.id.removeprefix("client.") for check in SUITE.checks]
BARE = {"capabilities.refused"}
"""What can be tried with clients that advertise nothing only."""


async def outcomes(fault: str, only: Iterable[str], timeout: float) -> Found:
    wanted = {f"client.{one}" for one in only}
    checks = [check for check in SUITE.checks if check.id in wanted]
    command = [sys.executable, "-I", "-S", str(PLANTED), fault, "{}"]
    found = await play(command, checks, timeout)
    return {outcome.check.id.removeprefix("client."): outcome for outcome in found}


def of(found: Found, verdict: str) -> dict[str, str]:
    return {name: one.words for name, one in found.items() if one.verdict == verdict}


def test_a_good_client_passes_everything() -> None:
    found = anyio.run(outcomes, "-", NAMES, 60)
    assert of(found, "failed") == {}
    assert of(found, "not tried").keys() == BARE


def test_a_good_client_without_capabilities_passes_everything_it_can() -> None:
    found = anyio.run(outcomes, "bare", NAMES, 60)
    assert of(found, "failed") == {}
    untried = {"authenticate.method", "fs.read", "fs.write", "terminal.run"}
    assert of(found, "not tried").keys() == untried


@pytest.fixture(scope="module")
def findings() -> dict[str, Found]:
    """What each check finds in the client that has its fault."""

    async def run(name: str) -> Found:
        return await outcomes(name, [name], 1.2 if name in SILENT else 60)

    return each(NAMES, run)


@pytest.mark.parametrize("name", NAMES)
def test_a_planted_fault_is_found_by_its_check(name: str, findings: dict[str, Found]) -> None:
    found = findings[name]
    assert found[name].verdict == "failed", found[name]
