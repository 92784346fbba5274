"""How a child ended, noticed without taking it away.

Owns: `ExitStatus` and the wait for it. Rule: the exit is seen through a pidfd, or by polling where
there is none, never through the end of a pipe, which a grandchild can hold open; and the child
stays a zombie, so that its number stays its own until the sweep of its family is over.
Called by `bridge.io.process`; `die` by those who end as their child did.
"""

import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import anyio

_POLL = 0.005, 0.1
_CHORES_EVERY = 5.0


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """An exit code, or the name of the signal that ended the process; one of them is None."""

    code: int | None
    signal: str | None

    def __str__(self) -> str:
        return f"exit code {self.code}" if self.signal is None else f"signal {self.signal}"


def _of_signal(number: int) -> ExitStatus:
    try:
        return ExitStatus(None, signal.Signals(number).name)
    except ValueError:
        return ExitStatus(None, f"SIG{number}")


def peek(child: subprocess.Popen[bytes]) -> ExitStatus | None:
    """How the child ended, None while it runs. Leaves it unreaped where the system can."""
    if child.returncode is None and hasattr(os, "waitid"):
        try:
            seen = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            # Taken by a waitpid(-1) that is not ours: Popen knows what to make of it.
            pass
        else:
            if seen is None:
                return None
            if seen.si_code == os.CLD_EXITED:
                return ExitStatus(seen.si_status, None)
            return _of_signal(seen.si_status)
    code = child.poll()
    if code is None:
        return None
    return ExitStatus(code, None) if code >= 0 else _of_signal(-code)


async def exit_of(child: subprocess.Popen[bytes], chores: Callable[[], None]) -> ExitStatus:
    """Waits for the child's end; `chores` is called now and then meanwhile."""
    fd = _pidfd(child.pid)
    pause, longest = _POLL
    try:
        while (status := peek(child)) is None:
            if fd < 0:
                await anyio.sleep(pause)
                pause = min(pause * 1.5, longest)
                continue
            with anyio.move_on_after(_CHORES_EVERY):
                await anyio.wait_readable(fd)
            chores()
    finally:
        if fd >= 0:
            os.close(fd)
    return status


def _pidfd(pid: int) -> int:
    """A descriptor that is readable once the process has exited; -1 where there is no such."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def die(name: str) -> None:
    """Ends this process by the signal that ended another, without a core of its own."""
    import resource  # not on the daemon's path

    number = int(name[3:]) if name[3:].isdigit() else getattr(signal, name, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
