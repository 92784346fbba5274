"""One attempt: a session of its own, opened, used and ended in one task.

Rules: the outcome is settled the moment it is known, and the leave-taking that follows can neither
delay it nor change it; whoever waits may be cancelled, the task still ends what it began, within a
bound. Run in the proxy's task group, awaited by `bridge.mcp.call` and `bridge.mcp.catalogue`.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from bridge.log import log
from bridge.mcp.channel import Fault
from bridge.mcp.eras import Client
from bridge.mcp.server import Server
from bridge.mcp.session import Listener, Session
from bridge.rules.retry import Failure

T = TypeVar("T")


class Attempt(Generic[T]):
    """`outcome` is what `work` gave, or why there is nothing; None until `settled`."""

    def __init__(
        self,
        server: Server,
        client: Client,
        listener: Listener,
        work: Callable[[Session], Awaitable[T]],
        *,
        timeout: float,
        deadline: float = float("inf"),
        describe: bool = False,
        quiet: bool = False,
    ) -> None:
        self._server = server
        self._client = client
        self._listener = listener
        self._work = work
        self._timeout = timeout
        self._latest = deadline
        self._describe, self._quiet = describe, quiet
        self._scope = anyio.CancelScope(deadline=deadline)
        self._settled = anyio.Event()
        self._cancelled = False
        self.session: Session | None = None
        self.outcome: T | Failure | None = None
        self.began = time.monotonic()

    async def result(self, tasks: TaskGroup) -> "T | Failure":
        """Runs the attempt in a task of `tasks` and waits for its outcome.

        Cancelled while it waits, it has the attempt cancelled, and does not wait for that.
        """
        tasks.start_soon(self._run)
        try:
            await self._settled.wait()
        except anyio.get_cancelled_exc_class():
            self._cancelled = True
            self._scope.cancel()
            raise
        assert self.outcome is not None
        return self.outcome

    def extend(self) -> None:
        """The server is getting on: the attempt's timeout runs anew, up to the call's deadline."""
        if self.session is not None:
            self._scope.deadline = min(anyio.current_time() + self._timeout, self._latest)

    async def _run(self) -> None:
        try:
            with self._scope:
                async with self._server.slots:
                    # Waiting for a slot is the call's time, not the attempt's.
                    self.began = time.monotonic()
                    self._scope.deadline = min(anyio.current_time() + self._timeout, self._latest)
                    await self._in_session()
        except Fault as fault:
            self._settle(fault.failure)
        except Exception as error:  # noqa: BLE001 - the proxy outlives any fault of ours
            log.error("an MCP attempt failed: %r", error, exc_info=error)
            self._settle(Failure("rejected", f"internal error: {error!r}"))
        finally:
            if self.outcome is None:
                self._settle(self._ended_early())

    async def _in_session(self) -> None:
        async with self._server.session(
            self._client, self._listener, describe=self._describe, quiet=self._quiet
        ) as session:
            self.session = session
            try:
                self._settle(await self._work(session))
            except Fault as fault:
                self._settle(fault.failure)
            except anyio.get_cancelled_exc_class():
                self._settle(self._ended_early())
                raise

    def _settle(self, outcome: "T | Failure") -> None:
        if self.outcome is None:
            self.outcome = outcome
            self._settled.set()

    def _ended_early(self) -> Failure:
        """The scope was cancelled: by the caller, or by the clock."""
        written = self.session is not None and self.session.written
        if self._cancelled:
            return Failure("timeout", "cancelled by the caller")
        seconds = time.monotonic() - self.began
        step = "the answer" if written else "the session to open"
        detail = f"timed out after {seconds:.3g} s of waiting for {step}"
        return Failure("timeout" if written else "opening", detail)
