"""What a session does one after another: the queue of its turns to run and calls to make.

Rule: a job is answered exactly once, by whoever comes first: its own end, a cancel, the session's
close or the daemon's end. Filled by `bridge.session.operations`; the session runs the prompts.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio

from bridge.errors import BridgeError, invalid_request
from bridge.log import debugging, log
from bridge.session.turn import TurnResult
from protocol_schemas.acp import AgentCapabilities
from protocol_schemas.host import Config

Block = dict[str, Any]
Announce = Callable[[dict[str, Any]], None]
"""Tells the result of a call, by the reader if need be, before what follows it on the wire."""


def unsaid(result: dict[str, Any]) -> None:
    """The Announce of a call whose result nobody waits for."""


class Job(ABC):
    """Something that is done in its turn."""

    def __init__(self) -> None:
        self.finished = False

    @abstractmethod
    def abort(self, error: BridgeError) -> None:
        """Answers the job with an error, unless it was answered."""


class PromptJob(Job):
    """A turn: a host's prompt, or messages that were queued by `send`."""

    def __init__(
        self,
        config: Config | None,
        blocks: Callable[[AgentCapabilities, bool], list[Block]],
        respond: Callable[[TurnResult], None],
        message_ids: list[str] | None = None,
        *,
        opening: Config | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.opening = opening
        """What a session is opened with for this prompt, where it differs from `config`."""
        self.blocks = blocks
        """Takes the agent's capabilities and whether this is the first turn; raises BridgeError."""
        self.message_ids = message_ids
        """Of the queued messages; None for a host's own prompt."""
        self._respond = respond

    def finish(self, result: TurnResult) -> None:
        """Answers the job, unless it was answered."""
        if not self.finished:
            self.finished = True
            self._respond(result)

    def abort(self, error: BridgeError) -> None:
        self.finish(TurnResult(error=error))

    def cancel(self) -> None:
        """The turn is over before it was sent to the agent."""
        self.finish(TurnResult(stop_reason="cancelled", outcome="cancelled"))


class Call(Job):
    """A call that must wait for the turns before it (open, load, ...); it announces its result."""

    def __init__(
        self,
        act: Callable[[Announce], Awaitable[None]],
        respond: Callable[[dict[str, Any] | BridgeError], None],
    ) -> None:
        super().__init__()
        self._act = act
        self._respond = respond

    async def run(self) -> None:
        """Raises BridgeError, which the queue answers the call with."""
        await self._act(self._finish)

    def _finish(self, outcome: dict[str, Any] | BridgeError) -> None:
        if not self.finished:
            self.finished = True
            self._respond(outcome)

    def abort(self, error: BridgeError) -> None:
        self._finish(error)


class Queue:
    """One session's jobs. `run` is its task, for the life of the session."""

    def __init__(
        self,
        name: str,
        prompt: Callable[[PromptJob], Awaitable[None]],
        *,
        after: Callable[[], None],
    ) -> None:
        self._name = name
        self._prompt = prompt
        self._after = after
        self._jobs: deque[Job] = deque()
        self._current: Job | None = None
        self._work = anyio.Event()
        self._scope = anyio.CancelScope()
        self._closed = False

    def prompts(self) -> Iterator[PromptJob]:
        """The turns that run or wait, in order, without those that have been answered."""
        jobs = self._jobs if self._current is None else (self._current, *self._jobs)
        return (job for job in jobs if isinstance(job, PromptJob) and not job.finished)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return self._current is None and not self._jobs

    def put(self, job: Job) -> None:
        """Puts a job behind those that wait."""
        if self._closed:
            job.abort(invalid_request(f"session {self._name!r} is closed"))
            return
        self._jobs.append(job)
        self._work.set()

    def put_next(self, job: Job) -> None:
        """Puts a job before those that wait."""
        self._jobs.appendleft(job)
        self._work.set()

    async def run(self) -> None:
        """Does the jobs in order, until the queue is closed."""
        while not self._closed:
            if not self._jobs:
                self._work = anyio.Event()
                await self._work.wait()
                continue
            job = self._current = self._jobs.popleft()
            with anyio.CancelScope() as self._scope:
                await self._perform(job)
            self._current = None
            self._after()

    async def _perform(self, job: Job) -> None:
        try:
            if isinstance(job, PromptJob):
                await self._prompt(job)
            elif isinstance(job, Call):
                await job.run()
        except BridgeError as error:
            job.abort(error)
        except Exception as error:  # noqa: BLE001 - one job's fault must not end the session
            log.error("session %r: %s", self._name, error, exc_info=debugging())
            job.abort(BridgeError(f"{type(error).__name__}: {error}"))

    def close(self, running: PromptJob | None) -> None:
        """Takes no more jobs. Those that have not reached the agent are over; `running`, which
        has, goes on to its end."""
        self._closed = True
        for job in (self._current, *self._jobs):
            if job is None or job is running:
                continue
            if isinstance(job, PromptJob):
                job.cancel()
            else:
                job.abort(BridgeError(f"session {self._name!r} is being closed", code="cancelled"))
        self._jobs.clear()
        if running is None:
            self._scope.cancel()
        self._work.set()
