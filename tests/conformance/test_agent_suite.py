"""The agent suite finds every fault that is planted in an agent, and none in good ones."""

import sys
from collections.abc import Iterable
from pathlib import Path

import anyio
import pytest

from conformance.agent.lab import Options
from conformance.agent.suite import SUITE, play
from conformance.check import Outcome
from tests.conformance.together import each

Found = dict[str, Outcome]

PLANTED = Path(__file__).with_name("planted_agent.py")
TEXTS = {"prompt": "hello", "tool_prompt": "a tool", "slow_prompt": "slow"}
SPECIAL = {
    "capabilities.honest": (["without=fork"], Options(**TEXTS, timeout=30)),
    "session.auth-required": (["auth=required"], Options(**TEXTS, timeout=30)),
    "authenticate.method": ([], Options(**TEXTS, auth_method="login", timeout=30)),
}
"""What an agent, and the options, must be like for a check to have something to try."""
SILENT = {
    "stdio.separators",
    "stdio.split",
    "stdio.large",
    "stdio.joined",
    "stdio.unicode",
    "stdio.end",
    "stdio.leaves-nothing",
    "rpc.id-number",
    "rpc.id-string",
    "rpc.ids",
    "rpc.responses",
    "permission.cancelled",
    "session.mcp-stdio",
}
"""Faults that show in something that does not come: their time-out is short."""
ALONE = SILENT | SPECIAL.keys() | {"prompt.again", "v2.state", "rpc.error"}
"""Faults with which others of their kind cannot be tried, or wait in vain."""
ALSO = {
    "initialize.answer": {"initialize.version"},
    "session.new": {"session.distinct"},
    "prompt.stop-reason": {"prompt.again"},
    "prompt.session-id": {"prompt.reply"},
    "permission.options": {"permission.rejected"},
    "mode.current": {"mode.set"},
    "config.current": {"config.set"},
}
"""What else of its kind a fault breaks by its nature."""
NAMES = [check.id.removeprefix("agent.") for check in SUITE.checks]


async def outcomes(store: Path, name: str, fault: str, only: Iterable[str]) -> Found:
    """What the checks find in the planted agent, by their names."""
    usual = Options(**TEXTS, timeout=0.7 if name in SILENT else 30)
    extra, options = SPECIAL.get(name, ([], usual))
    await anyio.Path(store).mkdir()
    command = [sys.executable, "-I", "-S", str(PLANTED), str(store), fault, *extra]
    wanted = {f"agent.{one}" for one in only}
    checks = [check for check in SUITE.checks if check.id in wanted]
    found, _ = await play(command, checks, options)
    return {outcome.check.id.removeprefix("agent."): outcome for outcome in found}


def failed(found: Found) -> dict[str, str]:
    return {name: one.words for name, one in found.items() if one.verdict == "failed"}


def test_a_good_agent_passes_everything_and_only_what_it_lacks_is_not_tried(tmp_path: Path) -> None:
    found = anyio.run(outcomes, tmp_path / "store", "", "-", NAMES)
    assert failed(found) == {}
    untried = {name for name, one in found.items() if one.verdict == "not tried"}
    assert untried == set(SPECIAL)


@pytest.mark.parametrize("name", SPECIAL)
def test_what_needs_a_special_agent_passes_with_a_good_one(name: str, tmp_path: Path) -> None:
    found = anyio.run(outcomes, tmp_path / "store", name, "-", [name])
    assert found[name].verdict == "passed"


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Found]:
    """What each check and others of its kind find in the agent that has its fault."""
    stores = tmp_path_factory.mktemp("stores")

    async def run(name: str) -> Found:
        kind = name.partition(".")[0]
        only = [name] if name in ALONE else [one for one in NAMES if one.startswith(f"{kind}.")]
        return await outcomes(stores / name, name, name, only)

    return each(NAMES, run)


@pytest.mark.parametrize("name", NAMES)
def test_a_planted_fault_is_found_by_its_check(name: str, findings: dict[str, Found]) -> None:
    """By that one alone of its kind, where none of them has to wait in vain."""
    found = findings[name]
    assert failed(found).keys() == {name, *ALSO.get(name, ())}, failed(found)
