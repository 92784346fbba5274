"""Child processes: started the same way on every loop, and ended with all that came of them.

Owns: `spawn`, the stderr ring, the ladder by which a child is stopped. Rules:
- Each child leads a session of its own; leaving the context stops it, whatever happened.
- Whether it runs is read off the process, never off its pipes, which a grandchild can hold open.
- Its stderr is drained from start to end, read or not, so that it never blocks on it.
- Every wait is bounded, and stopping is shielded: a cancelled caller leaves nothing behind.

Used for agents, their terminals and stdio MCP servers. Not anyio.open_process: its exits and pipes
differ between loops.
"""

import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.to_thread

from bridge.io.descendants import Calm, Lineage
from bridge.io.exits import ExitStatus, exit_of
from bridge.io.family import MARK, Family
from bridge.io.launch import Launched, launch
from bridge.io.pipes import FdReader, FdWriter
from bridge.io.proctable import Proc, signal_groups
from bridge.log import log

__all__ = ["ExitStatus", "Family", "Process", "spawn"]

STDERR_KEPT = 64 * 1024
_LEAVING = 0.5, 0.5
_AFTERMATH = 0.2


class Process:
    """A running child. Made by `spawn`; all of it may be used from any task of the loop."""

    def __init__(
        self,
        launched: Launched,
        family: Family,
        lineage: Lineage,
        on_stderr: Callable[[bytes], None] | None,
    ) -> None:
        self.pid = launched.child.pid
        self.stdin = None if launched.stdin is None else FdWriter(launched.stdin)
        """Who posts to it runs its `run` in a task beside."""
        self.stdout = FdReader(launched.stdout)
        """Readable to its end after the exit too, until the context is left."""
        self.status: ExitStatus | None = None
        """How it ended; None while it runs."""
        self._child = launched.child
        self._family = family
        self._lineage = lineage
        self._tail = bytearray()
        self._exited = anyio.Event()
        self._stderr_ended = anyio.Event()
        self._stderr = None if launched.stderr is None else FdReader(launched.stderr)
        self._on_stderr = on_stderr
        if self._stderr is None:
            self._stderr_ended.set()
        # What attends to the process is not cancelled with the caller: a stop under way could
        # else neither see the exit nor keep stderr flowing.
        self._attending = anyio.CancelScope(shield=True)
        self._draining = anyio.CancelScope(shield=True)
        self._stopping = False
        self._stopped = anyio.Event()
        self._wake = anyio.Event()
        self._eof = self._term = self._kill = float("inf")

    async def wait(self) -> ExitStatus:
        """Waits for the child's own end (those it started may live on)."""
        await self._exited.wait()
        assert self.status is not None
        return self.status

    def stderr_tail(self) -> str:
        """The last 64 KiB the child wrote to its stderr."""
        return self._tail[-STDERR_KEPT:].decode(errors="replace")

    async def drained_stderr(self, within: float) -> None:
        """Returns when stderr has come to its end, or after `within` seconds."""
        with anyio.move_on_after(within):
            await self._stderr_ended.wait()

    def signal_group(self, sig: int) -> None:
        """Signals the child's process group; nothing happens once it has been stopped."""
        # Unreaped, the child keeps the group's number from being anyone else's.
        if self._child.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, sig)

    async def stop(
        self, *, eof: float, term: float, kill: float = 2.0, hasten: anyio.Event | None = None
    ) -> None:
        """Ends the child and everything it started; returns when none of it is left.

        Closes stdin and waits `eof` seconds for the child to exit; sends TERM to its group and
        waits `term` seconds; kills what there is and waits `kill` seconds at most for the last of
        it to go. Where the child is gone and others of its family are not, they get the TERM and
        what is left of `term`. Setting `hasten` ends both waits.
        Called again meanwhile, by any task, the shorter waits hold for both callers.
        """
        with anyio.CancelScope(shield=True):
            self._eof, self._term = min(self._eof, eof), min(self._term, term)
            self._kill = min(self._kill, kill)
            self._wake.set()
            async with anyio.create_task_group() as tasks:
                if hasten is not None:
                    tasks.start_soon(self._hasten, hasten)
                if self._stopping:
                    await self._stopped.wait()
                else:
                    self._stopping = True
                    try:
                        await self._end()
                    finally:
                        self._bury()
                        self._stopped.set()
                tasks.cancel_scope.cancel()

    async def _hasten(self, event: anyio.Event) -> None:
        await event.wait()
        self._eof = self._term = 0
        self._wake.set()

    async def _end(self) -> None:
        if self.status is None:
            # Who is of the family shows best while the child lives: its death cuts the tree.
            await self._members()
        if self.stdin is not None:
            self.stdin.close()
        began = anyio.current_time()
        if not await self._exits(lambda: began + self._eof):
            self.signal_group(signal.SIGTERM)
            began = anyio.current_time()
            await self._exits(lambda: began + self._term)
        else:
            began = anyio.current_time()
        if self.status is None or await self._left(lambda: began + self._term, signal.SIGTERM):
            began = anyio.current_time()
            self.signal_group(signal.SIGKILL)
            if left := await self._left(lambda: began + self._kill, signal.SIGKILL):
                pids = ", ".join(str(proc.pid) for proc in left)
                log.warning("processes that cannot be killed: %s (started by %s)", pids, self.pid)
            await self._exits(lambda: began + self._kill)

    def _bury(self) -> None:
        """The last of the child: what its group may still hold, its exit status, its entry."""
        self.signal_group(signal.SIGKILL)
        self._child.poll()
        self._family.discard(self._lineage)
        self._family.chores()

    async def _exits(self, deadline: Callable[[], float]) -> bool:
        """Waits for the child's exit until a deadline that may move nearer meanwhile."""
        while self.status is None and (left := deadline() - anyio.current_time()) > 0:
            await self._pause(left)
        return self.status is not None

    async def _pause(self, seconds: float) -> None:
        """Waits; an exit and a change of the deadlines end it."""
        self._wake = anyio.Event()
        with anyio.move_on_after(seconds):
            await self._wake.wait()

    async def _left(self, deadline: Callable[[], float], sig: int) -> list[Proc]:
        """Signals the family's living members, each once (with KILL: as often as seen), until
        there are none; gives those there at the deadline. No event tells of the end of a process
        that is not a child, so this polls."""

        def kill(proc: Proc) -> None:
            signal_groups([proc], sig)

        strike = kill if sig == signal.SIGKILL else None
        signalled: set[tuple[int, int]] = set()
        calm = Calm(2 if self._lineage.has_grown else 1)
        pause = 0.001
        while True:
            members = await self._members(strike)
            if calm.after(members):
                return []
            signal_groups((proc for proc in members if strike or proc.key not in signalled), sig)
            signalled.update(proc.key for proc in members)
            if (left := deadline() - anyio.current_time()) <= 0:
                return members
            await self._pause(min(pause, left))
            pause = min(pause * 2, 0.05)

    async def _members(self, strike: Callable[[Proc], None] | None = None) -> list[Proc]:
        """The living of the family. In a thread: there may be thousands of processes to look at."""
        limiter = anyio.CapacityLimiter(1)
        try:
            return await anyio.to_thread.run_sync(
                self._family.members, self._lineage, strike, limiter=limiter
            )
        except RuntimeError:
            # No room for a thread: perhaps because of what is to be ended.
            return self._family.members(self._lineage, strike)

    async def attend(self) -> None:
        """Notes the exit when it comes. Run by `spawn`, like the two below."""
        with self._attending:
            self.status = await exit_of(self._child, self._family.chores)
            self._exited.set()
            self._wake.set()

    async def drain(self) -> None:
        """Reads stderr to its end."""
        assert self._stderr is not None
        try:
            with self._draining:
                while chunk := await self._stderr.receive():
                    self._take_stderr(chunk)
        finally:
            self._stderr.close()
            self._stderr_ended.set()

    def catch_up_stderr(self) -> None:
        """Takes in what the child has written to its stderr by now (a pipe's content at most)."""
        if self._stderr is not None and (chunk := self._stderr.available()):
            self._take_stderr(chunk)

    def _take_stderr(self, chunk: bytes) -> None:
        self._tail += chunk
        if len(self._tail) > 4 * STDERR_KEPT:
            del self._tail[:-STDERR_KEPT]
        if self._on_stderr is not None:
            self._on_stderr(chunk)

    async def release(self) -> None:
        """Stops the process if nobody has, and closes everything."""
        eof, term = _LEAVING
        await self.stop(eof=eof, term=term)
        with anyio.CancelScope(shield=True):
            await self.drained_stderr(_AFTERMATH)
        self._attending.cancel()
        self._draining.cancel()
        if self.stdin is not None:
            self.stdin.close()
        self.stdout.close()


@asynccontextmanager
async def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    on_stderr: Callable[[bytes], None] | None = None,
    merge_stderr: bool = False,
    stdin: bool = True,
    family: Family,
) -> AsyncGenerator[Process]:
    """Runs a command with pipes of ours; leaving the context stops it (half a second a step).

    `env` is the whole environment. `merge_stderr` sends stderr down stdout, in order; without
    `stdin` the child reads from /dev/null. Raises BridgeError `spawn_failed`.
    """
    mark = family.mark(env.get(MARK))
    family.starting += 1
    try:
        launched = launch(argv, {**env, MARK: mark}, cwd, stdin=stdin, merge_stderr=merge_stderr)
        lineage = family.add(launched.child.pid, mark)
    finally:
        family.starting -= 1
    process = Process(launched, family, lineage, on_stderr)
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(process.attend)
        if launched.stderr is not None:
            tasks.start_soon(process.drain)
        try:
            yield process
        except BaseException as error:  # noqa: BLE001
            # Raised again outside the group, which would wrap it.
            failure = error
        finally:
            await process.release()
    if failure is not None:
        try:
            raise failure
        finally:
            del failure
