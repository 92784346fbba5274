"""The process that outlives the daemon for a moment, to end what the daemon can no longer end.

Owns: the forked guardian and the pipe that ties it to the daemon. The daemon holds the only write
end; however it ends, also by SIGKILL to its whole process group, the guardian reads end of file
and kills every process of the daemon's family. Called by the app: `start` before anything else
exists (no loop, no thread, little memory to share), `close` as the last act.

Why a fork without exec: docs/decisions/0003-guardian.md. Hence nothing heavy is imported here.
"""

import os
import select
import signal
import time

from bridge.io.descendants import Kin
from bridge.io.family import Family
from bridge.io.forked import keep_only
from bridge.io.proctable import look_up, processes, signal_groups

_BOUND = 10.0
_SETTLING = 0.03


class Guardian:
    """The daemon's end of the pipe. `family` is what the guardian watches over."""

    def __init__(self, pid: int, fd: int, token: str) -> None:
        self.pid = pid
        self._fd = fd
        self.family = Family(token, self._tell, spare=frozenset({pid}), exclusive=True)

    @classmethod
    def start(cls) -> "Guardian":
        """Forks the guardian. Only before threads and loops exist; raises OSError."""
        token = os.urandom(16).hex()
        ours = look_up(os.getpid())
        theirs, mine = os.pipe()
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


def _guard(fd: int, token: str, since: int) -> None:
    """The guardian's life: it waits for the end of the pipe, then sweeps."""
    daemon = os.getppid()
    # Never drawn in: the host is in the daemon's session as a rule.
    foreign = {os.getsid(0), os.getpgrp()}
    keep_only(fd, name=b"acp-guardian")
    roots: set[tuple[int, int]] = set()
    orderly = idle = False
    text = b""
    idle = True
    while data := os.read(fd, 1 << 16):
        *lines, text = (text + data).split(b"\n")
        for line in lines:
            if line == b"bye":
                orderly = True
                continue
            pid, _, start = line[1:].partition(b" ")
            change = roots.add if line.startswith(b"+") else roots.discard
            change((int(pid), int(start)))
            idle = False
    if not idle:
        foreign.add(os.getsid(0))
        _sweep(Kin(f"{token}:", roots, since, foreign), foreign, daemon if orderly else None)


def _sweep(kin: Kin, foreign: set[int], daemon: int | None) -> None:
    """Kills all of `kin` until none is left.

    With the daemon still there (an orderly end), what children it has by now are to go too, and a
    clean scan is the end of it. After a sudden end a child may just be on its way from fork to
    exec, not yet with its mark: then the scan has to stay clean for a moment.
    """
    us = os.getpid()
    deadline = time.monotonic() + _BOUND
    pause, clean = 0.001, 0
    while time.monotonic() < deadline:
        table = processes()
        kin.admit(p for p in table if p.ppid == daemon and p.pid != us and p.sid not in foreign)
        if members := [proc for proc in kin.members(table) if not proc.dead]:
            clean = 0
            signal_groups(members, signal.SIGKILL, foreign)
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
            continue
        clean += 1
        if daemon is not None or clean == 3:
            return
        time.sleep(_SETTLING)
