"""The program under test as a process: pipes, the tail of its stderr, and an end for certain.

Owns: a process in a group of its own, and the marker in its environment by which what it starts
is known. Rule: stderr is always read, so that nobody blocks on it. Used by every suite.
"""

import os
import signal
import subprocess
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.abc import Process, TaskGroup

from conformance.check import Broken, NotTried

MARKER = "ACP_CONFORMANCE_MARKER"
TAIL = 4000
PROCESSES = Path("/proc")
TELLS = PROCESSES.exists()
"""Whether it can be told which processes live."""
_PAUSE = 0.01
_GRACE = 2.0
_READ = 1 << 18


class CannotStart(Exception):
    """The command cannot be run at all."""


class Output:
    """What a process writes to its stdout: a pipe of which the reading end can be closed."""

    def __init__(self) -> None:
        self._fd, self.inner = os.pipe()
        """`inner`: the process's end."""
        self._closed = False

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        with suppress(anyio.ClosedResourceError):
            while not self._closed:
                await anyio.wait_readable(self._fd)
                # It may have been closed since this was to go on.
                data = b"" if self._closed else os.read(self._fd, _READ)
                if not data:
                    return
                yield data

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            anyio.notify_closing(self._fd)
            os.close(self._fd)


class Child:
    """One process. Made by `start`; `end` it."""

    def __init__(self, process: Process, stdout: Output, marker: str) -> None:
        self._process = process
        self.stdout = stdout
        self.marker = marker
        self.pid = process.pid
        self.stderr = ""
        """The last of what it wrote to its stderr."""

    async def read_stderr(self) -> None:
        assert self._process.stderr is not None
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for data in self._process.stderr:
                self.stderr = (self.stderr + data.decode(errors="replace"))[-TAIL:]

    async def write(self, data: bytes, timeout: float) -> None:
        """Raises Broken where the process does not read, or is gone."""
        assert self._process.stdin is not None
        try:
            with anyio.fail_after(timeout):
                await self._process.stdin.send(data)
        except TimeoutError:
            raise Broken(f"it did not read its stdin for {timeout:g} s") from None
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            await self.exit_code(1)
            raise Broken(f"its stdin is closed; {self.state()}") from None

    async def close_stdin(self) -> None:
        assert self._process.stdin is not None
        with suppress(anyio.BrokenResourceError, OSError):
            await self._process.stdin.aclose()

    async def exit_code(self, timeout: float) -> int | None:
        """The exit code, once it has ended; None if it has not in that time."""
        with anyio.move_on_after(timeout):
            await self._process.wait()
        return self._process.returncode

    def state(self) -> str:
        """What is known of it, in words."""
        code = self._process.returncode
        if code is None:
            return "the process lives"
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        last = self.stderr.strip().splitlines()[-1:]
        return f"the process ended with {how}" + "".join(f"; stderr: {x[:200]}" for x in last)

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def survivors(self, timeout: float, naming: str = "") -> list[str]:
        """What it started, `naming` in its command line, and is still alive when the time is up;
        returns at once if nothing is. Raises NotTried where that cannot be told."""
        if not TELLS:
            raise NotTried(f"which processes live cannot be told: there is no {PROCESSES}")
        left: list[str] = []
        with anyio.move_on_after(timeout):
            # No event tells of the end of others' children.
            while left := [line for line in self._living() if naming in line]:  # noqa: ASYNC110
                await anyio.sleep(_PAUSE)
        return left

    def _living(self) -> list[str]:
        return [_describe(pid) for pid in marked(self.marker)]

    async def end(self, grace: float = _GRACE) -> None:
        """Ends it and what it started: end of stdin, TERM, KILL, with that time between."""
        with anyio.CancelScope(shield=True):
            await self.close_stdin()
            for number in (signal.SIGTERM, signal.SIGKILL):
                if await self.exit_code(grace) is not None:
                    break
                with suppress(ProcessLookupError):
                    os.killpg(self.pid, number)
            await self.exit_code(_GRACE)
            with suppress(NotTried):
                await self.survivors(grace / 4)
            for pid in marked(self.marker):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.stdout.close()
            await self._process.aclose()


@asynccontextmanager
async def task_group() -> AsyncGenerator[TaskGroup]:
    """A task group that raises a single failure as it is."""
    try:
        async with anyio.create_task_group() as tasks:
            yield tasks
    except ExceptionGroup as group:
        first, *others = group.exceptions
        if others:
            raise
        raise first from None


async def start(
    command: Sequence[str],
    tasks: TaskGroup,
    *,
    environment: Mapping[str, str] | None = None,
) -> Child:
    """Starts the command. Raises CannotStart."""
    marker = uuid.uuid4().hex
    output = Output()
    try:
        process = await anyio.open_process(
            list(command),
            stdin=subprocess.PIPE,
            stdout=output.inner,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {}), MARKER: marker},
            start_new_session=True,
        )
    except OSError as error:
        output.close()
        raise CannotStart(f"cannot start {command[0]!r}: {error.strerror}") from None
    finally:
        os.close(output.inner)
    child = Child(process, output, marker)
    tasks.start_soon(child.read_stderr)
    return child


def marked(marker: str) -> list[int]:
    """Every living process with the marker in its environment."""
    wanted = f"{MARKER}={marker}".encode()
    found: list[int] = []
    for entry in PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0") and _alive(entry):
                found.append(int(entry.name))
    return found


def _alive(entry: Path) -> bool:
    return (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"


def _describe(pid: int) -> str:
    try:
        command = (PROCESSES / f"{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return f"{pid}"
    return f"{pid} {command.decode(errors='replace').strip()[:120]}"
