"""Child processes: started the same way on every loop, and ended with all that came of them.

Owns: `spawn`, the stderr ring, the ladder by which a child is stopped. Rules:
- Each child leads a session of its own; leaving the context stops it, whatever happened.
- Whether it runs is read off the process, never off its pipes, which a grandchild can hold open.
- Its stderr is drained from start to end, read or not, so that it never blocks on it.
- Every wait is bounded, and stopping is shielded: a cancelled caller leaves nothing behind.

Used for agents, their terminals and stdio MCP servers. Not anyio.open_process: its exits and pipes
differ between loops.
"""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.to_thread

from bridge.errors import BridgeError
from bridge.io import descendants
from bridge.io.descendants import MARK, Family, Lineage, Proc
from bridge.io.exits import ExitStatus, exit_of
from bridge.io.pipes import FdReader, FdWriter
from bridge.log import log

__all__ = ["ExitStatus", "Family", "Process", "spawn"]

STDERR_KEPT = 64 * 1024
_PIPE_SIZE = 256 * 1024
_LEAVING = 0.5, 0.5, 2.0
_AFTERMATH = 0.2


class Process:
    """A running child. Made by `spawn`; all of it may be used from any task of the loop."""

    def __init__(
        self,
        child: "subprocess.Popen[bytes]",
        family: Family,
        lineage: Lineage,
        stdin: FdWriter | None,
        stdout: FdReader,
    ) -> None:
        self.pid = child.pid
        self.stdin = stdin
        """Who posts to it runs its `run` in a task beside."""
        self.stdout = stdout
        """Readable to its end after the exit too, until the context is left."""
        self.status: ExitStatus | None = None
        """How it ended; None while it runs."""
        self._child = child
        self._family = family
        self._lineage = lineage
        self._tail = bytearray()
        self._exited = anyio.Event()
        self._stderr_ended = anyio.Event()
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
            if left := await self._left(lambda: began + self._kill, signal.SIGKILL):
                pids = ", ".join(str(proc.pid) for proc in left)
                log.warning("processes that cannot be killed: %s (started by %s)", pids, self.pid)
            await self._exits(lambda: began + self._kill)
        self.signal_group(signal.SIGKILL)
        self._child.poll()
        self._family.discard(self._lineage)
        self._family.reap_orphans()

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
        """Signals the family's living members, all once and newcomers (with KILL: all each time),
        until there are none; gives those there at the deadline. No event tells of the end of a
        process that is not a child, so this polls."""
        signalled: set[tuple[int, int]] = set()
        pause, clean = 0.001, 0
        while True:
            members = await self._members()
            clean = 0 if members else clean + 1
            # A scan can miss one that is forked while its parent dies; two in a row will not.
            if clean > int(self._lineage.has_grown):
                return []
            fresh = [proc for proc in members if proc.key not in signalled]
            if fresh or sig == signal.SIGKILL:
                descendants.signal_groups(fresh or members, sig)
                signalled.update(proc.key for proc in members)
            if (left := deadline() - anyio.current_time()) <= 0:
                return members
            await self._pause(min(pause, left))
            pause = min(pause * 2, 0.05)

    async def _members(self) -> list[Proc]:
        """The living of the family. Scans in a thread: there may be thousands of processes."""
        table = await anyio.to_thread.run_sync(
            descendants.processes, limiter=anyio.CapacityLimiter(1)
        )
        members = self._family.members(self._lineage, table)
        self._family.reap(members)
        return [proc for proc in members if not proc.dead]

    async def _watch(self) -> None:
        self.status = await exit_of(self._child, self._family.reap_orphans)
        self._exited.set()
        self._wake.set()

    async def _drain(self, stderr: FdReader, on_stderr: Callable[[bytes], None] | None) -> None:
        while chunk := await stderr.receive():
            self._tail += chunk
            if len(self._tail) > 4 * STDERR_KEPT:
                del self._tail[:-STDERR_KEPT]
            if on_stderr is not None:
                on_stderr(chunk)
        self._stderr_ended.set()


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
    child, ends = _popen(argv, {**env, MARK: mark}, cwd, stdin, merge_stderr)
    stderr = None if ends[2] is None else FdReader(ends[2])
    process = Process(
        child,
        family,
        family.add(child.pid, mark),
        None if ends[0] is None else FdWriter(ends[0]),
        FdReader(ends[1]),
    )
    # Not cancelled with the caller: without them a stop under way would neither see the exit nor
    # keep stderr flowing.
    helpers = [anyio.CancelScope(shield=True), anyio.CancelScope(shield=True)]
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_within, helpers[0], process._watch)  # pyright: ignore[reportPrivateUsage]
        if stderr is None:
            process._stderr_ended.set()  # pyright: ignore[reportPrivateUsage]
        else:
            drain = process._drain  # pyright: ignore[reportPrivateUsage]
            tasks.start_soon(_within, helpers[1], drain, stderr, on_stderr)
        try:
            yield process
        except BaseException as error:  # noqa: BLE001
            # Raised again outside the group, which would wrap it.
            failure = error
        finally:
            eof, term, kill = _LEAVING
            await process.stop(eof=eof, term=term, kill=kill)
            with anyio.CancelScope(shield=True):
                await process.drained_stderr(_AFTERMATH)
            for scope in helpers:
                scope.cancel()
            if process.stdin is not None:
                process.stdin.close()
            process.stdout.close()
            if stderr is not None:
                stderr.close()
    if failure is not None:
        try:
            raise failure
        finally:
            del failure


async def _within(scope: anyio.CancelScope, call: Callable[..., object], *args: object) -> None:
    with scope:
        await call(*args)  # pyright: ignore[reportGeneralTypeIssues]


def _popen(
    argv: Sequence[str],
    env: dict[str, str],
    cwd: str | None,
    stdin: bool,
    merge_stderr: bool,
) -> "tuple[subprocess.Popen[bytes], tuple[int | None, int, int | None]]":
    """The child, and our ends of its stdin, stdout and stderr."""
    if not argv or not argv[0]:
        raise _spawn_failed("the agent's command is empty: give it as a list, program first")
    _mind_children()
    opened: list[int] = []

    def pipe() -> tuple[int, int]:
        both = os.pipe()
        opened.extend(both)
        return both

    ours: list[int] = []
    try:
        child_in, our_in = pipe() if stdin else (subprocess.DEVNULL, None)
        our_out, child_out = pipe()
        our_err, child_err = (None, subprocess.STDOUT) if merge_stderr else pipe()
        with suppress(OSError, AttributeError):
            fcntl.fcntl(our_out, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        # No preexec_fn: it would rule out vfork.
        child = subprocess.Popen(
            list(argv),
            stdin=child_in,
            stdout=child_out,
            stderr=child_err,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        ours = [fd for fd in (our_in, our_out, our_err) if fd is not None]
    except (OSError, ValueError, TypeError) as error:
        raise _spawn_failed(_why(error, argv[0], env, cwd)) from None
    else:
        return child, (our_in, our_out, our_err)
    finally:
        for fd in opened:
            if fd not in ours:
                os.close(fd)


def _mind_children() -> None:
    """A host that ignores SIGCHLD hands that on, and the kernel then drops exit statuses."""
    if (
        signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
        and threading.current_thread() is threading.main_thread()
    ):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _spawn_failed(message: str) -> BridgeError:
    return BridgeError(message, code="spawn_failed", origin="agent")


def _why(error: Exception, command: str, env: Mapping[str, str], cwd: str | None) -> str:
    """What kept `command` from starting, and what to do about it."""
    at = f"cannot start {command!r}: "
    if not isinstance(error, OSError):
        return f"{at}{error}; its arguments and environment must be text without NUL characters"
    if cwd is not None and not os.path.isdir(cwd):
        return f"{at}the working directory {cwd!r} does not exist; create it or give another cwd"
    if cwd is not None and not os.access(cwd, os.X_OK):
        return f"{at}the working directory {cwd!r} may not be entered; check its permissions"
    path = os.path.join(cwd or "", command) if "/" in command else None
    if path is None and error.errno in (errno.ENOENT, errno.EACCES, errno.ENOTDIR):
        path = shutil.which(command, path=env.get("PATH"))
        if path is None:
            return (
                f"{at}no such command on PATH ({env.get('PATH', 'not set')}); "
                "install it, or give its full path"
            )
    match error.errno:
        case errno.ENOENT if path is not None and os.path.exists(path):
            return f"{at}the interpreter named in its first line (#!) does not exist; install it"
        case errno.ENOENT:
            return f"{at}there is no such file; check the path"
        case errno.EACCES if path is not None and os.path.isdir(path):
            return f"{at}it is a directory; name the program in it"
        case errno.EACCES:
            return f"{at}it is not executable; chmod +x it, or start it by its interpreter"
        case errno.ENOEXEC:
            return f"{at}it is no program for this machine, or a script without a #! line"
        case errno.E2BIG:
            return f"{at}its arguments and environment are too large together; pass less"
        case errno.EMFILE | errno.ENFILE:
            return f"{at}no file descriptor is free; raise the limit (ulimit -n)"
        case errno.EAGAIN | errno.ENOMEM:
            return f"{at}the system has no room for another process ({error.strerror})"
        case _:
            return f"{at}{error.strerror or error}"
