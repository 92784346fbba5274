"""The daemon suite in its order, and a run of it. Called by `conformance.__main__` and tests."""

import argparse
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from conformance import runner
from conformance.check import Check, Outcome
from conformance.daemon import endings, framing, generation_b, native
from conformance.daemon.lab import SUITE, Lab, config
from conformance.judge import no_fault

__all__ = ["ORDER", "SUITE", "play", "run_daemon"]

ORDER = (framing, generation_b, native, endings)
"""The modules whose checks these are, in the order in which they run."""
SUITE.order(*ORDER)


def judged(rule: str) -> Callable[[Lab], Awaitable[None]]:
    """The check that no frame of the whole run broke that rule."""

    async def run(lab: Lab) -> None:
        host = await lab.host("B")
        for directive in ("say hello", "error"):
            await host.call("prompt", config=config(directive))
        # What came unasked comes before the answer to this.
        await host.call("prompt", config=config("say hello"))
        no_fault(lab.faults, rule)

    return run


for _name, (_section, _says) in framing.RULES.items():
    SUITE.check(_name, "MUST", _section, _says)(judged(_name))


async def play(
    command: Sequence[str],
    checks: Sequence[Check[Lab]],
    timeout: float,
    tell: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Runs the checks against the command. Raises CannotStart."""
    found, _ = await runner.play(lambda tasks: Lab(command, timeout, tasks), checks, tell)
    return found


async def run_daemon(
    arguments: argparse.Namespace, tell: Callable[[Outcome], None]
) -> tuple[list[Outcome], dict[str, Any]]:
    """What the command line asks for."""
    return await play(arguments.command, arguments.chosen, arguments.timeout, tell), {}
