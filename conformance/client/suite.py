"""The client suite in its order, and a run of it. Called by `conformance.__main__` and tests."""

import argparse
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from conformance import runner
from conformance.check import Check, NotTried, Outcome
from conformance.client import conduct, service
from conformance.client.lab import SUITE, Lab
from conformance.judge import RULES, no_fault

__all__ = ["ORDER", "SUITE", "play", "run_client"]

ORDER = (conduct, service)
"""The modules whose checks these are, in the order in which they run."""
SUITE.order(*ORDER)


def judged(rule: str) -> Callable[[Lab], Awaitable[None]]:
    """The check that nothing the client wrote in any scenario broke that rule."""

    async def run(lab: Lab) -> None:
        sent = (await lab.play("turn")).sent
        no_fault(lab.faults, rule)
        if not sent:
            raise NotTried("the client has sent the agent nothing")

    return run


for _name, (_severity, _section, _says) in RULES.items():
    SUITE.check(_name, _severity, _section, _says)(judged(_name))


async def play(
    command: Sequence[str],
    checks: Sequence[Check[Lab]],
    timeout: float,
    tell: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Runs the checks against the command. Raises CannotStart."""
    found, _ = await runner.play(lambda tasks: Lab(command, timeout, tasks), checks, tell)
    return found


async def run_client(
    arguments: argparse.Namespace, tell: Callable[[Outcome], None]
) -> tuple[list[Outcome], dict[str, Any]]:
    """What the command line asks for."""
    return await play(arguments.command, arguments.chosen, arguments.timeout, tell), {}
