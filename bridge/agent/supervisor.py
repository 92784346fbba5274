"""A running agent: its process and its connection, from start to the last of its descendants.

Owns: telling why an agent is gone, exactly once, before any of its open calls is failed. Rules:
an agent that closes stdout while it lives is killed and reported as `protocol`, and so is one that
closed its stdin, once there is something to tell it; one that exits is reported by code or signal,
with the tail of its stderr, which has reached the daemon's own stderr by then. Agents run in the
daemon's task group; sessions share one where they were forked.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio
from anyio.abc import TaskStatus

from bridge.agent.client import AgentClient
from bridge.agent.stderr import StderrShare
from bridge.errors import BridgeError
from bridge.io.process import Family, Process, spawn
from bridge.log import debugging, log
from bridge.rpc.connection import Connection, Tap
from bridge.rpc.inbound import Inbound
from bridge.wire.lines import LineTooLong

_EXIT_GRACE = 1.0
"""Seconds between the end of stdout and the exit, and the other way round."""
_STDERR_GRACE = 0.5
_ANSWERS_CEILING = 64 * 1024 * 1024
"""Bytes of ours an agent may leave unread in its stdin while it asks for more."""


class Agent:
    """One agent process. `run` is its task; all else may be called from any other."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        name: str,
        family: Family,
        on_stderr: Callable[[bytes], None],
        watch_stderr: Callable[[bytes], None] | None = None,
        on_exit: Callable[["Agent"], None],
        room: Callable[[], Awaitable[None]],
        tap: Tap | None = None,
    ) -> None:
        self.argv = list(argv)
        self.cwd = cwd
        self.name = name
        self.client: AgentClient
        self.process: Process
        self.death: BridgeError | None = None
        """Why it is gone; set before its open calls fail, and at the latest when `gone` is."""
        self.gone = anyio.Event()
        self.stopping = False
        self.ignores_eof = False
        """Whether it is known not to end at the end of its stdin, so that nobody waits for that."""
        self.exits: Mapping[str, str] = {}
        """What some of its exit codes are known to mean."""
        self._env = env
        self._family = family
        self._on_stderr = on_stderr
        self._stderr = StderrShare()
        self._watch_stderr = watch_stderr
        self._on_exit = on_exit
        self._room = room
        self._tap = tap
        self._reading = anyio.CancelScope()
        self._deaf = anyio.Event()
        """Set when something was written that it cannot read any more."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Starts the process, reports started, and returns when it and its family are gone.

        Raises BridgeError(spawn_failed) before it has started, nothing after.
        """
        try:
            async with spawn(
                self.argv,
                env=self._env,
                cwd=self.cwd,
                on_stderr=self._take_stderr,
                family=self._family,
            ) as self.process:
                assert self.process.stdin is not None
                self.process.stdin.on_broken = self._deaf.set
                connection = Connection(self.process.stdout, self.process.stdin, tap=self._tap)
                async with anyio.create_task_group() as tasks:
                    inbound = Inbound(connection, tasks)
                    self.client = AgentClient(
                        connection, inbound, name=self.name, room=self._held_back
                    )
                    tasks.start_soon(self.process.stdin.run)
                    tasks.start_soon(self._watch_exit)
                    tasks.start_soon(self._watch_stdin)
                    task_status.started()
                    await self._read(connection)
                    tasks.cancel_scope.cancel()
        finally:
            self.gone.set()

    async def _read(self, connection: Connection) -> None:
        fault: Exception | None = None
        with self._reading:
            try:
                await connection.run(self.client)
            except Exception as error:  # noqa: BLE001 - one agent's input must not end the others
                fault = error
                if not isinstance(error, LineTooLong):
                    log.error("session %r: %s", self.name, error, exc_info=debugging() and error)
        with anyio.CancelScope(shield=True):
            if fault is None:
                with anyio.move_on_after(_EXIT_GRACE):
                    await self.process.wait()
            lived = self.process.status is None
            if lived and not self.stopping:
                await self.process.stop(eof=0, term=0.5)
            await self.process.drained_stderr(_STDERR_GRACE)
            self.death = self._cause(lived, fault)
            self.explain()
            self._on_exit(self)
            self.client.end(self.death.message)

    def _cause(self, lived: bool, fault: Exception | None) -> BridgeError:
        status = self.process.status
        extra: dict[str, object] = {"stderr": self.process.stderr_tail()}
        if status is not None and not lived:
            extra |= {"exit_code": status.code, "signal": status.signal}
        if isinstance(fault, LineTooLong):
            words = f"the agent wrote {fault}, and was stopped"
            return BridgeError(words, code="protocol", origin="agent", extra=extra)
        if fault is not None:
            words = f"the agent was stopped: {type(fault).__name__}: {fault}"
            return BridgeError(words, extra=extra)
        if lived and not self.stopping:
            end = "stdin" if self._deaf.is_set() else "stdout"
            words = f"the agent closed its {end} while it was running, and was stopped"
            return BridgeError(words, code="protocol", origin="agent", extra=extra)
        words = f"the agent ended ({status or 'killed'})"
        if status is not None and (meaning := self.exits.get(str(status.code))):
            words = f"{words}: {meaning}"
        return BridgeError(words, code="agent_exited", origin="agent", extra=extra)

    async def _watch_exit(self) -> None:
        """A grandchild may hold stdout open after the agent's exit: what is there is read, however
        long the host holds us back, then reading ends."""
        await self.process.wait()
        await self._read_out()

    async def _watch_stdin(self) -> None:
        """What is written to an agent that closed its stdin is lost, and would be waited for."""
        await self._deaf.wait()
        await self._read_out()

    async def _read_out(self) -> None:
        """Reading ends a moment from now, with what is there."""
        await anyio.sleep(_EXIT_GRACE)
        while not self.process.stdout.waiting:  # noqa: ASYNC110 - the reader has no event for it
            await anyio.sleep(_EXIT_GRACE / 10)
        self.process.stdout.close()

    def _take_stderr(self, data: bytes) -> None:
        if self._watch_stderr is not None:
            self._watch_stderr(data)
        if passed := self._stderr.feed(data):
            self._on_stderr(passed)

    def begin_turn(self) -> None:
        """A turn begins: its stderr is passed on anew."""
        self._stderr.refill()

    def explain(self) -> None:
        """A turn failed: what the agent has written to its stderr by now goes to the daemon's
        before the answer, and the end of what was held back."""
        self.process.catch_up_stderr()
        if rest := self._stderr.rest():
            self._on_stderr(rest)

    async def _held_back(self) -> None:
        stdin = self.process.stdin
        if stdin is not None and stdin.queued > _ANSWERS_CEILING:
            # It asks without reading the answers; waiting here bounds what is kept for it.
            await stdin.drained()
        await self._room()

    async def stop(
        self, *, eof: float, term: float, kill: float = 2.0, hasten: anyio.Event | None = None
    ) -> None:
        """Ends the process by the ladder (see Process.stop) and waits until all of it is gone.

        What it wrote last is still read; a host that does not take it can delay the end no longer
        than the grace after TERM.
        """
        self.stopping = True
        eof = 0 if self.ignores_eof else eof
        await self.process.stop(eof=eof, term=term, kill=kill, hasten=hasten)
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(max(term, 0.2)):
                await self.gone.wait()
            self._reading.cancel()
            await self.gone.wait()
