"""A session's queue: one job after another, each answered once, whoever comes first."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from bridge.errors import BridgeError
from bridge.session.jobs import Call, PromptJob, Queue
from bridge.session.turn import TurnResult

pytestmark = pytest.mark.anyio


class Line:
    """A queue whose prompts wait to be let through, and what came of its jobs."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.answers: list[tuple[str, Any]] = []
        self.gates: dict[str, anyio.Event] = {}
        self.after = 0
        self.when_done: Callable[[], None] = lambda: None
        self.queue = Queue("it", self._prompt, after=self._after)
        self.names: dict[PromptJob, str] = {}

    async def _prompt(self, job: PromptJob) -> None:
        if job.finished:
            return
        name = self.names[job]
        self.begun.append(name)
        if name.startswith("fails"):
            raise BridgeError(name, code="agent_error")
        if name.startswith("breaks"):
            raise ZeroDivisionError(name)
        if name in self.gates:
            await self.gates[name].wait()
        job.finish(TurnResult(reply=name, outcome="completed"))

    def _after(self) -> None:
        self.after += 1
        self.when_done()

    def prompt(self, name: str, *, held: bool = False) -> PromptJob:
        if held:
            self.gates[name] = anyio.Event()

        def respond(result: TurnResult) -> None:
            words = result.error.message if result.error else result.stop_reason or result.reply
            self.answers.append((name, words))

        job = PromptJob(None, lambda _can, _first: [], respond)
        self.names[job] = name
        return job

    def call(self, name: str, *, held: bool = False) -> None:
        if held:
            self.gates[name] = anyio.Event()

        async def act(announce: Callable[[Any], None]) -> None:
            self.begun.append(name)
            if name in self.gates:
                await self.gates[name].wait()
            if name.startswith("fails"):
                raise BridgeError(name, code="agent_error")
            announce({"is": name})

        def respond(outcome: Any) -> None:
            words = outcome.message if isinstance(outcome, BridgeError) else outcome
            self.answers.append((name, words))

        self.queue.put(Call(act, respond))


@asynccontextmanager
async def line() -> AsyncGenerator[Line]:
    made = Line()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(made.queue.run)
            yield made
            made.queue.close(running=None)


async def settled() -> None:
    await anyio.wait_all_tasks_blocked()


async def test_jobs_are_done_in_the_order_they_came() -> None:
    async with line() as it:
        for name in ("a", "b", "c"):
            it.queue.put(it.prompt(name))
        it.call("d")
        it.queue.put(it.prompt("e"))
        await settled()
        assert it.begun == ["a", "b", "c", "d", "e"]
        assert it.answers == [(n, {"is": n} if n == "d" else n) for n in it.begun]
        assert it.after == 5
        assert it.queue.idle


async def test_a_job_that_fails_or_breaks_is_answered_and_the_next_begins() -> None:
    async with line() as it:
        it.queue.put(it.prompt("fails"))
        it.queue.put(it.prompt("breaks"))
        it.call("fails too")
        it.queue.put(it.prompt("fine"))
        await settled()
        assert it.answers == [
            ("fails", "fails"),
            ("breaks", "ZeroDivisionError: breaks"),
            ("fails too", "fails too"),
            ("fine", "fine"),
        ]


async def test_prompts_lists_what_runs_and_waits_but_not_what_was_answered() -> None:
    async with line() as it:
        jobs = [it.prompt(name, held=True) for name in ("a", "b", "c")]
        for job in jobs:
            it.queue.put(job)
        assert list(it.queue.prompts()) == jobs
        await settled()
        assert list(it.queue.prompts()) == jobs
        assert not it.queue.idle
        jobs[1].cancel()
        assert list(it.queue.prompts()) == [jobs[0], jobs[2]]
        jobs[0].finish(TurnResult(reply="early"))
        assert list(it.queue.prompts()) == [jobs[2]]
        assert not it.queue.idle
        it.gates["a"].set()
        it.gates["c"].set()
        await settled()
        assert it.answers == [("b", "cancelled"), ("a", "early"), ("c", "c")]
        assert it.queue.idle


async def test_a_job_is_answered_once_by_whoever_comes_first() -> None:
    async with line() as it:
        job = it.prompt("a")
        job.finish(TurnResult(reply="first"))
        job.finish(TurnResult(reply="second"))
        job.abort(BridgeError("third"))
        job.cancel()
        assert it.answers == [("a", "first")]


async def test_what_is_put_next_comes_before_those_that_wait_and_after_the_one_that_runs() -> None:
    async with line() as it:
        it.queue.put(it.prompt("runs", held=True))
        it.queue.put(it.prompt("waits"))
        await settled()
        it.queue.put_next(it.prompt("next"))
        it.gates["runs"].set()
        await settled()
        assert [name for name, _ in it.answers] == ["runs", "next", "waits"]


async def test_a_job_put_when_one_is_done_comes_before_those_that_wait() -> None:
    async with line() as it:
        once = [it.prompt("mail")]
        it.when_done = lambda: it.queue.put_next(once.pop()) if once else None
        it.queue.put(it.prompt("a"))
        it.queue.put(it.prompt("b"))
        await settled()
        assert [name for name, _ in it.answers] == ["a", "mail", "b"]


async def test_closing_answers_what_has_not_reached_the_agent_and_lets_the_running_end() -> None:
    async with line() as it:
        running = it.prompt("runs", held=True)
        it.queue.put(running)
        it.queue.put(it.prompt("waits"))
        it.call("call")
        await settled()
        it.queue.close(running)
        assert it.answers == [("waits", "cancelled"), ("call", "session 'it' is being closed")]
        it.gates["runs"].set()
        await settled()
        assert it.answers[-1] == ("runs", "runs")
        assert it.begun == ["runs"]


async def test_closing_with_nothing_at_the_agent_ends_what_is_under_way() -> None:
    async with line() as it:
        it.call("opening", held=True)
        it.queue.put(it.prompt("waits"))
        await settled()
        it.queue.close(running=None)
        assert it.answers == [
            ("opening", "session 'it' is being closed"),
            ("waits", "cancelled"),
        ]
        await settled()
        assert it.begun == ["opening"]


async def test_a_closed_queue_refuses_and_closing_again_does_nothing() -> None:
    async with line() as it:
        it.queue.close(running=None)
        it.queue.close(running=None)
        it.queue.put(it.prompt("late"))
        it.call("late too")
        assert [name for name, _ in it.answers] == ["late", "late too"]
        assert all("closed" in words for _, words in it.answers)
        await settled()
        assert it.begun == []


async def test_a_call_s_answer_may_come_long_before_its_end() -> None:
    async with line() as it:
        gate = anyio.Event()
        answers: list[Any] = []

        async def act(announce: Callable[[Any], None]) -> None:
            announce({"early": True})
            await gate.wait()
            raise BridgeError("too late to matter")

        it.queue.put(Call(act, answers.append))
        await settled()
        assert answers == [{"early": True}]
        assert not it.queue.idle
        gate.set()
        await settled()
        assert answers == [{"early": True}]
        assert it.queue.idle
