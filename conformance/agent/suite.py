"""The agent suite in its order, and a run of it. Called by `conformance.__main__` and the tests."""

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from conformance import runner
from conformance.agent import (
    cancel,
    initialize,
    modes,
    passive,
    prompts,
    restore,
    rpc,
    sessions,
    stdio,
    tools,
    version2,
)
from conformance.agent.checks import SUITE
from conformance.agent.lab import Lab, Options
from conformance.check import Check, Outcome

__all__ = ["ORDER", "SUITE", "play", "run_agent"]

ORDER = (
    initialize, sessions, rpc, prompts, tools, cancel, restore, modes, stdio, version2, passive
)  # fmt: skip
"""The modules whose checks these are, in the order in which they run."""
SUITE.order(*ORDER)


async def play(
    command: Sequence[str],
    checks: Sequence[Check[Lab]],
    options: Options,
    tell: Callable[[Outcome], None] = lambda outcome: None,
) -> tuple[list[Outcome], Lab]:
    """Runs the checks against the command. Raises CannotStart."""
    found, lab = await runner.play(lambda tasks: Lab(command, options, tasks), checks, tell)
    lab.dispose()
    return found, lab


async def run_agent(
    arguments: argparse.Namespace, tell: Callable[[Outcome], None]
) -> tuple[list[Outcome], dict[str, Any]]:
    """What the command line asks for."""
    names = [field.name for field in dataclasses.fields(Options)]
    options = Options(**{name: getattr(arguments, name) for name in names})
    found, lab = await play(arguments.command, arguments.chosen, options, tell)
    agents = [client.agent for client in lab.clients if client.agent]
    about = agents[0] if agents else {}
    return found, {
        "agent": about.get("agentInfo") or about.get("info"),
        "protocol_versions": sorted({client.version for client in lab.clients if client.agent}),
    }
