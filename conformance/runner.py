"""Runs checks in a laboratory, one after the other, and tells what came of each.

Rule: a check cannot take the others with it; what it left running is tidied up behind it. Called by
`conformance.__main__` and by the tests.
"""

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, cast

from anyio.abc import TaskGroup

from conformance import process
from conformance.check import Broken, Check, NotTried, Outcome, Verdict
from conformance.process import CannotStart


class Laboratory(Protocol):
    """Where checks are tried."""

    def mark(self) -> int:
        """How much traffic there has been so far."""
        ...

    def since(self, mark: int) -> list[str]:
        """The last traffic since the mark, ready to be shown."""
        ...

    async def tidy(self) -> None:
        """After each check: ends what the check alone has used."""
        ...

    async def close(self) -> None:
        """After the last one."""
        ...


L = TypeVar("L", bound=Laboratory)


async def play(
    make: Callable[[TaskGroup], L],
    checks: Sequence[Check[L]],
    tell: Callable[[Outcome], None],
) -> tuple[list[Outcome], L]:
    """Runs the checks in a laboratory that is made for them and closed. Raises CannotStart."""
    async with process.task_group() as tasks:
        lab = make(tasks)
        try:
            return await run(checks, lab, tell), lab
        finally:
            await lab.close()


async def run(checks: Sequence[Check[L]], lab: L, tell: Callable[[Outcome], None]) -> list[Outcome]:
    """Every outcome, told as it comes."""
    outcomes: list[Outcome] = []
    for check in checks:
        mark, began = lab.mark(), time.monotonic()
        verdict: Verdict = "passed"
        words, lines = "", list[str]()
        try:
            await check.run(lab)
        except NotTried as reason:
            verdict, words = "not tried", str(reason)
        except Broken as broken:
            verdict, words = "failed", str(broken)
            lines = broken.lines or lab.since(mark)
        except CannotStart:
            raise
        except Exception as error:  # noqa: BLE001 - one check must not take the others with it
            verdict = "not tried"
            words = f"the check could not cope with what came: {type(error).__name__}: {error}"
        seconds = time.monotonic() - began
        await lab.tidy()
        named = cast("Check[object]", check)
        outcomes.append(Outcome(named, verdict, words, lines, seconds))
        tell(outcomes[-1])
    return outcomes
