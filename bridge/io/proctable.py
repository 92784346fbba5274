"""The process table: who runs, whose child, in which session; and signals by group.

Owns: the reading of /proc (of ps, where there is none) and the sending of a signal to the group
of a process that is certain to be the one meant. Called by all that handles processes, and by the
guardian, right after start-up: nothing but os and time is imported at the top.
"""

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

PROC = "/proc"
_PATIENCE = 40
_LOOK_EVERY = 0.0005


class Proc:
    """One process as the table had it. `start` is in clock ticks since boot; 0 if not known."""

    __slots__ = ("dead", "pgid", "pid", "ppid", "sid", "start")

    def __init__(self, pid: int, ppid: int, pgid: int, sid: int, start: int, dead: bool) -> None:
        self.pid = pid
        self.ppid = ppid
        self.pgid = pgid
        self.sid = sid
        self.start = start
        self.dead = dead
        """A zombie: it has exited and waits for its parent to notice."""

    @property
    def key(self) -> tuple[int, int]:
        return (self.pid, self.start)


def _read(path: str, *, strict: bool = False) -> bytes:
    """All of a file of /proc; `b""` if it is gone or not ours to read (OSError if `strict`)."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        if strict:
            raise
        return b""
    try:
        data = os.read(fd, 1 << 16)
        if len(data) < 4096:
            return data
        while more := os.read(fd, 1 << 16):
            data += more
    except OSError:
        return b""
    else:
        return data
    finally:
        os.close(fd)


def look_up(pid: int) -> Proc | None:
    """The process with this number now, or None."""
    data = _read(f"{PROC}/{pid}/stat")
    # The command name, in parentheses, may hold anything, also ") ".
    fields = data[data.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    ppid, pgid, sid, start = int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19])
    # A first thread that has ended shows as a zombie while the others run on.
    dead = fields[0] in (b"Z", b"X") and int(fields[17]) <= 1
    return Proc(pid, ppid, pgid, sid, start, dead)


def processes() -> "Iterator[Proc]":
    """Every process of the machine that can be seen, the newest first, each as it is when its
    turn comes: those that are young may not live long. Blocks for about 10 µs a process."""
    try:
        names = os.listdir(PROC)
    except OSError:
        yield from _processes_of_ps()
        return
    newest = last_pid()
    pids = [int(name) for name in names if name.isdigit()]
    # Numbers are given out in a circle.
    pids.sort(key=lambda pid: (pid > newest, -pid))
    for pid in pids:
        if proc := look_up(pid):
            yield proc


def last_pid() -> int:
    """The number of the process forked last on this machine; 0 if it cannot be told."""
    return int((_read(f"{PROC}/loadavg").split() or [b"0"])[-1])


def _processes_of_ps() -> list[Proc]:
    """The table by way of ps, where there is no /proc (macOS): no sessions, no start times."""
    import subprocess

    try:
        table = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat="],
            capture_output=True,
            timeout=5,
            check=False,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    found: list[Proc] = []
    for line in table.splitlines():
        fields = line.split()
        if len(fields) == 4 and all(field.isdigit() for field in fields[:3]):
            pid, ppid, pgid = (int(field) for field in fields[:3])
            # The group stands in for the session: true of all that did not make one of their own.
            found.append(Proc(pid, ppid, pgid, pgid, 0, fields[3].startswith(b"Z")))
    return found


def marked(pid: int, mark: bytes) -> bool:
    """Whether the process was started with `mark` in its environment.

    In the middle of exec a process shows none, for a moment that is long enough to be met: half
    of all looks right after a Popen. So an empty one is looked at again."""
    patience = _PATIENCE
    while patience > 0:
        try:
            environ = _read(f"{PROC}/{pid}/environ", strict=True)
        except OSError:
            return False
        if environ:
            return mark in environ
        data = _read(f"{PROC}/{pid}/stat")
        fields = data[data.rfind(b")") + 2 :].split()
        if len(fields) < 49 or fields[20] == b"0":
            # Gone, or a kernel thread, without any memory.
            return False
        env_start, env_end = fields[47:49]
        # Both are there and the same: as a rule it has none, and not only none yet.
        patience -= 10 if env_start == env_end != b"0" else 1
        time.sleep(_LOOK_EVERY)
    return False


def signal_groups(procs: "Iterable[Proc]", sig: int, spared: "Collection[int]" = ()) -> None:
    """Signals the process group of each of `procs` that still is the process it was.

    A group lies within one session, so all of it is kin of its member; signalling it whole leaves
    a fork in progress no way out, as signalling its members one by one would.
    """
    done = {0, 1, os.getpgrp(), *spared}
    for proc in procs:
        if proc.dead or proc.pgid in done:
            continue
        now = look_up(proc.pid) if proc.start else proc
        if now is None or now.start != proc.start or now.pgid in done:
            continue
        done.add(now.pgid)
        try:
            os.killpg(now.pgid, sig)
        except (ProcessLookupError, PermissionError):
            continue


def children() -> list[Proc]:
    """Our own children, adopted ones and zombies among them."""
    pids: list[bytes] = []
    try:
        for thread in os.listdir(f"{PROC}/self/task"):
            pids += _read(f"{PROC}/self/task/{thread}/children", strict=True).split()
    except OSError:
        # Kernels can be built without that file.
        us = os.getpid()
        return [proc for proc in processes() if proc.ppid == us]
    return [proc for pid in pids if (proc := look_up(int(pid)))]
