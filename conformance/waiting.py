"""Waiting for what the program under test writes: the same for whoever plays its other side.

Rule: a wait is for a condition that is looked at whenever something came; one that is too long, or
for what can come no more, is the program's fault. Base of the client and the host.
"""

from collections.abc import Callable
from typing import TypeVar

import anyio

from conformance.check import Broken
from conformance.process import Child

T = TypeVar("T")


class Waiting:
    """One process, and waits of `timeout` seconds at most. `ended`: its stdout has; `spoiled`: why
    nothing of what still comes can be understood."""

    def __init__(self, child: Child, timeout: float) -> None:
        self.child = child
        self.timeout = timeout
        self.ended = False
        self.spoiled = ""
        self._changed = anyio.Event()

    def _notice(self) -> None:
        """Something came."""
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def wait(self, condition: Callable[[], T | None], what: str) -> T:
        """The condition's value once it is true; else Broken says `what`."""
        with anyio.move_on_after(self.timeout):
            while True:
                value = condition()
                if value:
                    return value
                if self.ended or self.spoiled:
                    await self.child.exit_code(1)
                    more = f"{self.spoiled}; " if self.spoiled else ""
                    raise Broken(f"{what}; {more}{self.child.state()}")
                await self._changed.wait()
        raise Broken(f"{what} in {self.timeout:g} s")
