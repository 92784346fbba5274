"""The process that outlives the daemon for a moment, to end what the daemon can no longer end.

Owns: the forked guardian and the pipe that ties it to the daemon. The daemon holds the only write
end; however it ends, also by SIGKILL to its whole process group, the guardian reads end of file
and kills every process of the daemon's family. Called by the commands: `start` before anything else
exists (no loop, no thread, little memory to share), `close` as the last act, which is leaving it.

Why a fork without exec: docs/decisions/0003-guardian.md. Hence nothing heavy is imported here.
"""

import fcntl
import os
import select
import signal
import time

from bridge.io.descendants import Calm, Kin
from bridge.io.family import Family
from bridge.io.forked import keep_only
from bridge.io.proctable import Proc, look_up, processes, signal_groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_BOUND = 10.0
_SETTLING = 0.03


class Guardian:
    """The daemon's end of the pipe; a context. `family` is what the guardian watches over."""

    def __init__(self, pid: int, fd: int, token: str) -> None:
        self.pid = pid
        self._fd = fd
        self.family = Family(token, self._tell, spare=frozenset({pid}), exclusive=True)

    @classmethod
    def start(cls) -> "Guardian":
        """Forks the guardian. Only before threads and loops exist; raises OSError."""
        token = os.urandom(16).hex()
        ours = look_up(os.getpid())
        theirs, mine = _pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(mine)
                _guard(theirs, token, since=ours.start if ours else 0)
            finally:
                os._exit(0)
        os.close(theirs)
        os.set_blocking(mine, False)
        return cls(pid, mine, token)

    def __enter__(self) -> "Guardian":
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _tell(self, line: str) -> None:
        """A root has come (`+pid start`) or gone (`-`). A guardian that is gone is no obstacle."""
        try:
            os.write(self._fd, line.encode())
        except OSError:
            return

    def close(self, within: float = 1.0) -> None:
        """Has the guardian sweep once more, and returns when it has ended (or after `within` s),
        so that nothing is left when the daemon exits. Blocks."""
        if self._fd < 0:
            return
        self._tell("bye\n")
        os.close(self._fd)
        self._fd = -1
        deadline = time.monotonic() + within
        try:
            fd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            fd = -1
        try:
            if fd >= 0:
                select.select([fd], [], [], within)
            while os.waitpid(self.pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
                time.sleep(0.002)
        except ChildProcessError:
            return
        finally:
            if fd >= 0:
                os.close(fd)


def _pipe() -> tuple[int, int]:
    """A pipe above the numbers of stdio, also where the host closed some of those."""
    low = os.pipe()
    read, write = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in low)
    for fd in low:
        os.close(fd)
    return read, write


def _guard(fd: int, token: str, since: int) -> None:
    """The guardian's life: it waits for the end of the pipe, then sweeps."""
    daemon = os.getppid()
    # Never drawn in: the host is in the daemon's session as a rule.
    foreign = {os.getsid(0), os.getpgrp()}
    keep_only(fd, name=b"acp-guardian")
    foreign.add(os.getsid(0))
    roots: set[tuple[int, int]] = set()
    spared = {os.getpid()}
    told = orderly = False
    text = b""
    while data := os.read(fd, 1 << 16):
        *lines, text = (text + data).split(b"\n")
        for line in lines:
            pid, _, start = line[1:].partition(b" ")
            match line[:1]:
                case b"+":
                    told = True
                    roots.add((int(pid), int(start)))
                case b"-":
                    roots.discard((int(pid), int(start)))
                case b"=":
                    spared.add(int(pid))
                case _:
                    orderly = True
    if told:
        kin = Kin(f"{token}:", roots, since, foreign)
        _sweep(kin, foreign, spared, daemon if orderly else None)


def _sweep(kin: Kin, foreign: set[int], spared: set[int], daemon: int | None) -> None:
    """Kills all of `kin` until none is left.

    With the daemon still there (an orderly end), what children it has by now are to go too, and a
    clean scan is the end of it. After a sudden end a child may just be on its way from fork to
    exec, not yet with its mark: then the scan has to stay clean for a moment.
    """
    deadline = time.monotonic() + _BOUND
    calm = Calm(1 if daemon else 3)
    pause = 0.001

    def strike(proc: Proc) -> None:
        signal_groups([proc], signal.SIGKILL, foreign)

    def seen() -> "Iterator[Proc]":
        for proc in processes():
            if proc.ppid == daemon and proc.pid not in spared and proc.sid not in foreign:
                kin.admit([proc])
            yield proc

    while time.monotonic() < deadline:
        members = [proc for proc in kin.members(seen(), strike) if not proc.dead]
        signal_groups(members, signal.SIGKILL, foreign)
        if calm.after(members):
            return
        time.sleep(pause if members else _SETTLING)
        pause = min(pause * 2, 0.05)
