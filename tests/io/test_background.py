"""Tasks end with their block, and the block's own errors come out unwrapped."""

import anyio
import anyio.lowlevel
import pytest

from bridge.io.background import Background

pytestmark = pytest.mark.anyio


async def test_leaving_cancels_the_tasks_and_waits_for_them() -> None:
    ended: list[int] = []

    async def work(number: int) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(number)

    async with Background() as tasks:
        tasks.start(work, 1)
        tasks.start(work, 2)
        await anyio.wait_all_tasks_blocked()
    assert sorted(ended) == [1, 2]


async def test_an_error_of_the_block_is_not_wrapped() -> None:
    async def work() -> None:
        await anyio.sleep_forever()

    async def fail() -> None:
        async with Background() as tasks:
            tasks.start(work)
            raise LookupError

    with pytest.raises(LookupError):
        await fail()


async def test_cancelling_ends_the_block_too() -> None:
    went_on = False
    async with Background() as tasks:
        tasks.cancel()
        await anyio.lowlevel.checkpoint()
        went_on = True
    assert not went_on


async def test_a_cancellation_from_outside_passes_through() -> None:
    with anyio.CancelScope() as scope:
        async with Background():
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
