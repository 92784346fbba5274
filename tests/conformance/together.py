"""Runs of a suite side by side: most of the time of each goes into starting small processes."""

from collections.abc import Awaitable, Callable, Iterable

import anyio

from conformance.check import Outcome

AT_ONCE = 4
Run = Callable[[str], Awaitable[dict[str, Outcome]]]


def each(names: Iterable[str], run: Run) -> dict[str, dict[str, Outcome]]:
    """What `run` finds for each of the names."""
    found: dict[str, dict[str, Outcome]] = {}

    async def one(name: str, limiter: anyio.CapacityLimiter) -> None:
        async with limiter:
            found[name] = await run(name)

    async def all_of_them() -> None:
        limiter = anyio.CapacityLimiter(AT_ONCE)
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(one, name, limiter)

    anyio.run(all_of_them)
    return found
