"""The rules for every message, judged on all that the agent has written in the whole run.

They come last. When one is chosen alone, an ordinary turn, a turn with a tool and an error are had
first, so that there is something to judge.
"""

from collections.abc import Awaitable, Callable

from conformance.agent.checks import SUITE
from conformance.agent.lab import Lab
from conformance.check import NotTried
from conformance.judge import RULES, no_fault


def judged(rule: str) -> Callable[[Lab], Awaitable[None]]:
    """The check that no fault was found under that rule."""

    async def run(lab: Lab) -> None:
        async def greeting() -> None:
            await (await lab.client()).ping()

        for step in (greeting, lab.turn, lab.tool_turn):
            try:
                await step()
            except NotTried:
                # Judged is what has come.
                continue
        no_fault(lab.faults, rule)
        if not any(client.messages for client in lab.clients):
            raise NotTried("the agent has written no message")

    return run


for name, (severity, section, says) in RULES.items():
    SUITE.check(name, severity, section, says)(judged(name))
