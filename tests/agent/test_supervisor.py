"""A running agent: why it is gone is told once, before its open calls fail, with all it wrote."""

import os
import sys
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from bridge.agent import supervisor
from bridge.agent.supervisor import Agent
from bridge.errors import BridgeError
from bridge.io.process import Family
from bridge.rpc.connection import ConnectionEnded
from bridge.wire.lines import LineTooLong
from tests.peers.processes import MARKER, survivors

pytestmark = pytest.mark.anyio

ECHO = r'while read line; do printf "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}\n"; done'


class Started:
    """An agent and what was heard of it, in order."""

    def __init__(self, argv: list[str], **options: Any) -> None:
        self.marker = uuid.uuid4().hex
        self.heard: list[Any] = []
        self.stderr = b""
        self.agent = Agent(
            argv,
            env={"PATH": os.environ["PATH"], MARKER: self.marker},
            cwd="/",
            name="it",
            family=Family(),
            on_stderr=self._on_stderr,
            on_exit=lambda agent: self.heard.append(("exit", agent.death)),
            room=self._room,
            **options,
        )

    def _on_stderr(self, data: bytes) -> None:
        self.stderr += data

    async def _room(self) -> None:
        pass

    async def died(self) -> BridgeError:
        """What it died of, with a call open."""
        self.call()
        await self.agent.gone.wait()
        assert self.agent.death is not None
        return self.agent.death

    def call(self, method: str = "m") -> None:
        """A call whose settling is noted."""
        connection = self.agent.client.connection

        def settle(response: Any) -> None:
            try:
                self.heard.append(connection.result_of(response))
            except ConnectionEnded as error:
                self.heard.append(("ended", str(error), self.agent.death is not None))

        connection.call(method, {}, settle)


@asynccontextmanager
async def running(script: str | list[str], **options: Any) -> AsyncGenerator[Started]:
    """An agent made of a shell script; asserted to leave nothing behind."""
    argv = ["sh", "-c", script] if isinstance(script, str) else script
    started = Started(argv, **options)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            await tasks.start(started.agent.run)
            try:
                yield started
            finally:
                with anyio.CancelScope(shield=True):
                    await started.agent.stop(eof=0.5, term=0.5)
    left = await anyio.to_thread.run_sync(survivors, started.marker, 5)
    assert left == []


async def until(condition: Callable[[], object]) -> None:
    """Polls for what another process does."""
    while not condition():  # noqa: ASYNC110
        await anyio.sleep(0.01)


async def test_a_call_is_answered_and_the_end_of_stdin_ends_it() -> None:
    async with running(ECHO) as started:
        started.call()
        await until(lambda: started.heard)
        assert started.heard == [7]
        await started.agent.stop(eof=5, term=5)
        assert started.agent.gone.is_set()
    death = started.agent.death
    assert death is not None
    assert (death.code, death.extra["exit_code"]) == ("agent_exited", 0)


@pytest.mark.parametrize(
    ("end", "words", "extra"),
    [
        ("exit 3", "exit code 3", {"exit_code": 3, "signal": None}),
        ("exit 0", "exit code 0", {"exit_code": 0, "signal": None}),
        ("kill -9 $$", "SIGKILL", {"exit_code": None, "signal": "SIGKILL"}),
        ("kill -15 $$", "SIGTERM", {"exit_code": None, "signal": "SIGTERM"}),
    ],
)
async def test_an_end_is_named_before_the_open_calls_fail(
    end: str, words: str, extra: dict[str, Any]
) -> None:
    async with running(f"read line; echo last words >&2; {end}") as started:
        started.call()
        started.call()
        await started.agent.gone.wait()
        exit_, *calls = started.heard
        assert exit_[0] == "exit"
        death = exit_[1]
        assert (death.code, death.origin) == ("agent_exited", "agent")
        assert words in death.message
        assert {key: death.extra[key] for key in extra} == extra
        assert death.extra["stderr"] == "last words\n"
        assert calls == [("ended", death.message, True)] * 2
        assert started.stderr == b"last words\n"


async def test_what_it_wrote_last_is_read_before_its_end_is_told() -> None:
    answer = r"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"at last\"}"
    async with running(f'read line; printf "{answer}"; exit 1') as started:
        started.call()
        started.call()
        await started.agent.gone.wait()
        assert started.heard[0] == "at last"
        assert [item[0] for item in started.heard[1:]] == ["exit", "ended"]


async def test_a_call_to_an_agent_that_closed_its_stdin_fails_with_what_it_said_before() -> None:
    answer = r"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"heard\"}"
    script = f'read line; exec 0<&-; printf "{answer}\\n"; echo deaf >&2; sleep 600'
    async with running(script) as started:
        started.call()
        await until(lambda: started.heard and started.stderr)
        death = await started.died()
        assert (death.code, death.extra["stderr"]) == ("protocol", "deaf\n")
        assert "closed its stdin" in death.message
        assert started.heard == ["heard", ("exit", death), ("ended", death.message, True)]


async def test_a_closed_stdout_of_a_living_agent_is_a_broken_protocol() -> None:
    async with running("exec 1>&-; sleep 600") as started:
        death = await started.died()
        assert death.code == "protocol"
        assert "closed its stdout" in death.message
        assert "exit_code" not in death.extra


async def test_a_grandchild_that_holds_stdout_does_not_hide_the_exit() -> None:
    async with running("sleep 600 & exit 5") as started:
        death = await started.died()
        assert death.extra["exit_code"] == 5


async def test_a_line_over_the_ceiling_is_a_broken_protocol(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = supervisor.Connection
    monkeypatch.setattr(
        supervisor, "Connection", lambda *args, **more: real(*args, ceiling=300_000, **more)
    )
    async with running("head -c 1000000 /dev/zero | tr '\\0' x; sleep 600") as started:
        death = await started.died()
        assert death.code == "protocol"
        assert "300000 bytes" in death.message
        assert str(LineTooLong(1, 300_000)) in death.message


async def test_a_fault_of_ours_while_reading_ends_this_agent_only() -> None:
    async with running("read line; echo 42; sleep 600") as started:

        def noise(_: object) -> None:
            raise ZeroDivisionError("ours")

        started.agent.client.noise = noise  # pyright: ignore
        death = await started.died()
        assert (death.code, death.origin) == ("internal", "bridge")
        assert "ZeroDivisionError: ours" in death.message


async def test_a_deaf_agent_is_killed_with_its_children() -> None:
    script = "trap '' TERM HUP INT; setsid sleep 600 & sleep 600 & echo up >&2; exec sleep 600"
    async with running(script) as started:
        await until(lambda: b"up" in started.stderr)
        await started.agent.stop(eof=0.1, term=0.1)
        death = started.agent.death
        assert death is not None
        assert death.extra.get("exit_code") is None


async def test_stopping_twice_is_stopping_once() -> None:
    async with running("trap '' TERM; sleep 600") as started, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: started.agent.stop(eof=60, term=60))
        await anyio.wait_all_tasks_blocked()
        await started.agent.stop(eof=0, term=0)
    assert [item[0] for item in started.heard] == ["exit"]


async def test_hastening_ends_the_graces() -> None:
    hasten = anyio.Event()
    async with running("trap '' TERM; sleep 600") as started, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: started.agent.stop(eof=60, term=60, hasten=hasten))
        await anyio.wait_all_tasks_blocked()
        hasten.set()
        await started.agent.gone.wait()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["/no/such/agent"], "/no/such/agent"),
        (["no-such-agent-anywhere"], "PATH"),
        ([], "empty"),
        (["sh", "-c", "a\0b"], "NUL"),
        (["/etc/passwd"], "/etc/passwd"),
    ],
)
async def test_what_cannot_be_started_is_named(argv: list[str], words: str) -> None:
    started = Started(argv)
    caught: list[BridgeError] = []
    async with anyio.create_task_group() as tasks:
        try:
            await tasks.start(started.agent.run)
        except BridgeError as error:
            caught.append(error)
    assert caught[0].code == "spawn_failed"
    assert words in caught[0].message
    assert started.agent.gone.is_set()


async def test_stderr_is_there_when_it_is_asked_to_explain() -> None:
    async with running("read line; echo why >&2; echo 42; sleep 600") as started:
        seen: list[bytes] = []

        def noise(_: object) -> None:
            started.agent.explain()
            seen.append(started.stderr)

        started.agent.client.noise = noise  # pyright: ignore
        started.call()
        await until(lambda: seen)
        assert seen == [b"why\n"]


async def test_stderr_is_watched_whole_and_passed_on_in_part() -> None:
    watched: list[bytes] = []
    script = f"{sys.executable} -c \"import os; os.write(2, b'x' * 1_000_000)\"; echo end >&2"
    async with running(script, watch_stderr=watched.append) as started:
        await started.agent.gone.wait()
        assert len(b"".join(watched)) == 1_000_004
        assert len(started.stderr) < 400_000
        assert started.stderr.endswith(b"xend\n")
