"""Tasks that live as long as a block: `Background`, a task group for use inside a class.

Rule: leaving the block cancels the tasks and waits for them; an error of the block itself comes out
as it is, not wrapped in an exception group (the block is the caller's, not the group's).
"""

from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any

import anyio


class Background:
    """An async context manager; `start` begins a task."""

    async def __aenter__(self) -> "Background":
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self._tasks.cancel_scope.cancel()
        if isinstance(error, anyio.get_cancelled_exc_class()):
            return bool(await self._tasks.__aexit__(kind, error, trace))
        await self._tasks.__aexit__(None, None, None)
        return False

    def start(self, work: Callable[..., Coroutine[Any, Any, Any]], *arguments: object) -> None:
        """Begins a task."""
        self._tasks.start_soon(work, *arguments)

    def cancel(self) -> None:
        """Cancels the tasks, and the block."""
        self._tasks.cancel_scope.cancel()
