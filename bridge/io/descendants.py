"""Which processes belong to us, and how to be rid of them all.

Owns: the picture of the process table, the `Family` (everything this daemon's children ever
started) and each child's `Lineage`. Called by `bridge.io.process` (one child ends) and
`bridge.io.guardian` (the daemon is gone).

Killing a child's process group is not enough: agents give each shell tool a session of its own,
launchers die before their workers, daemons fork twice. A process is of a lineage if it carries
the lineage's mark in its environment, descends from one that is, or is in a session of one that
is: no process can enter a session but by being forked in it. Rules:
- A lineage's root is reaped only once the sweep is over, so its number, which is its group's and
  session's too, cannot pass to a stranger while it is signalled.
- Any other process is looked up again, start time included, right before its group is signalled.
- One scan is never believed to be the last: forks race it, so sweeps go on until a scan is clean.

The guardian runs this right after start-up: nothing is imported at the top but os and time.
"""

import os
import time

MARK = "ACP_MCP_BRIDGE_FAMILY"
PROC = "/proc"
_UNREAPED_AFTER = 1.0


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


def _read(path: str) -> bytes:
    """All of a file of /proc; `b""` if it is gone or not ours to read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
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


def processes() -> list[Proc]:
    """Every process of the machine that can be seen. Blocks for about 10 µs a process."""
    try:
        names = os.listdir(PROC)
    except OSError:
        return _processes_of_ps()
    found = [proc for name in names if name.isdigit() and (proc := look_up(int(name)))]
    return found or _processes_of_ps()


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
    """Whether the process was started with `mark` in its environment."""
    return mark in _read(f"{PROC}/{pid}/environ")


def kin(
    table: list[Proc],
    seeds: set[int],
    mark: bytes,
    *,
    since: int = 0,
    sessions: frozenset[int] | set[int] = frozenset(),
) -> list[Proc]:
    """Those of `table` that are seeds, carry the mark, descend from one of them, or share a
    session with one; only what started at tick `since` or later is asked for its mark."""
    us = os.getpid()
    foreign_sid = os.getsid(0)
    children: dict[int, list[Proc]] = {}
    session: dict[int, list[Proc]] = {}
    for proc in table:
        children.setdefault(proc.ppid, []).append(proc)
        session.setdefault(proc.sid, []).append(proc)
    found: dict[int, Proc] = {}

    def take(proc: Proc) -> None:
        waiting = [proc]
        while waiting:
            proc = waiting.pop()
            if proc.pid in found or proc.pid <= 1 or proc.pid == us:
                continue
            found[proc.pid] = proc
            waiting += children.get(proc.pid, ())
            if proc.sid != foreign_sid:
                waiting += session.pop(proc.sid, ())

    for proc in table:
        if proc.pid in seeds or proc.sid in sessions:
            take(proc)
    for proc in table:
        if (
            proc.pid not in found
            and not proc.dead
            and proc.start >= since
            and marked(proc.pid, mark)
        ):
            take(proc)
    return list(found.values())


def signal_groups(procs: list[Proc], sig: int) -> None:
    """Signals the process group of each of `procs` that still is the process it was.

    A group lies within one session, so all of it is kin of its member; signalling it whole leaves
    a fork in progress no way out, as signalling its members one by one would.
    """
    done = {0, 1, os.getpgrp()}
    for proc in procs:
        if proc.dead or proc.pgid in done:
            continue
        if proc.start:
            now = look_up(proc.pid)
            if now is None or now.start != proc.start or now.pgid in done:
                continue
            proc = now
        done.add(proc.pgid)
        try:
            os.killpg(proc.pgid, sig)
        except (ProcessLookupError, PermissionError):
            continue


class Lineage:
    """A child of ours and all that comes of it. Sync and quick but for `members`."""

    def __init__(self, pid: int, mark: str) -> None:
        root = look_up(pid)
        self.pid = pid
        self.start = root.start if root else 0
        self.mark = mark.encode()
        self.known: set[tuple[int, int]] = set()
        self.sessions = {pid}

    @property
    def has_grown(self) -> bool:
        """Whether it was ever seen to have more members than its root."""
        return len(self.known) > 1

    def members(self, table: list[Proc]) -> list[Proc]:
        """Who of the table is of the lineage, the dead included; they are known from then on.

        What was known and is an orphan by now, its mark washed off, is still found.
        """
        seeds = {proc.pid for proc in table if proc.key in self.known}
        seeds.add(self.pid)
        members = kin(table, seeds, self.mark, since=self.start, sessions=self.sessions)
        ours = os.getsid(0)
        for proc in members:
            self.known.add(proc.key)
            if proc.sid != ours:
                self.sessions.add(proc.sid)
        return members


class Family:
    """All lineages of this daemon. `token` is unguessable and shared with the guardian only;
    `tell` lets the guardian know of roots; `spare` are other children of ours, left alone."""

    def __init__(
        self,
        token: str | None = None,
        tell: "TellGuardian | None" = None,
        spare: frozenset[int] = frozenset(),
    ) -> None:
        self.token = token or os.urandom(16).hex()
        self._tell = tell
        self._spare = spare
        self._count = 0
        self._lineages: dict[int, Lineage] = {}
        self._corpses: dict[int, float] = {}
        self._adopting = False

    def mark(self, inherited: str | None) -> str:
        """The value of MARK for a new child. A daemon that is itself of a family keeps that
        family's mark before its own, so that the outer one finds the inner one's processes."""
        self._count += 1
        mark = f"{self.token}:{self._count}:"
        return f"{inherited},{mark}" if inherited else mark

    def add(self, pid: int, mark: str) -> Lineage:
        """Takes a child just started with `mark` in its environment into the family."""
        self._adopt_orphans()
        lineage = Lineage(pid, mark.rpartition(",")[2])
        self._lineages[pid] = lineage
        if self._tell is not None:
            self._tell(f"+{pid} {lineage.start}\n")
        return lineage

    def discard(self, lineage: Lineage) -> None:
        """A lineage whose root has been reaped and which has been swept."""
        if self._lineages.pop(lineage.pid, None) is not None and self._tell is not None:
            self._tell(f"-{lineage.pid} {lineage.start}\n")

    def members(self, lineage: Lineage, table: list[Proc]) -> list[Proc]:
        """`lineage.members`, with the orphans that came to us and can be nobody else's: where
        the environment was cleared, nothing but that tells whose they are."""
        members = lineage.members(table)
        if strays := self._strays(lineage, table, {proc.pid for proc in members}):
            lineage.known.update(strays)
            members = lineage.members(table)
        return members

    def _strays(
        self, lineage: Lineage, table: list[Proc], members: set[int]
    ) -> list[tuple[int, int]]:
        """Children of ours that we did not start, no lineage knows, and only this one can have
        brought about, the others being younger. (All children are started by `process.spawn`.)"""
        us, ours = os.getpid(), os.getsid(0)
        passed = members.union(self._lineages, self._spare)
        strays: list[tuple[int, int]] = []
        for proc in table:
            if proc.ppid != us or proc.dead or proc.sid == ours or proc.pid in passed:
                continue
            elders = [other for other in self._lineages.values() if other.start <= proc.start]
            if elders == [lineage] and not marked(proc.pid, self.token.encode()):
                strays.append(proc.key)
        return strays

    def reap(self, members: list[Proc]) -> None:
        """Buries those of `members` that died as our (adopted) children; never a root."""
        us = os.getpid()
        for proc in members:
            if proc.dead and proc.ppid == us and proc.pid not in self._lineages:
                _bury(proc.pid)

    def reap_orphans(self) -> None:
        """Buries adopted orphans that died unnoticed: any child of ours that is no root and that
        nobody has waited for between two calls, a second apart. One system call if there is none.
        """
        if not hasattr(os, "waitid"):
            return
        while True:
            try:
                dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if dead is None or dead.si_pid in self._lineages or dead.si_pid in self._spare:
                return
            now = time.monotonic()
            if now - self._corpses.setdefault(dead.si_pid, now) < _UNREAPED_AFTER:
                return
            _bury(dead.si_pid)
            self._corpses.clear()

    def _adopt_orphans(self) -> None:
        """Makes us the parent of our descendants' orphans, where the system can (Linux)."""
        if self._adopting or not os.path.isdir(PROC):
            return
        self._adopting = True
        # Imported here: 5 ms, spent while the first child starts.
        import ctypes

        subreaper = 36  # PR_SET_CHILD_SUBREAPER
        try:
            ctypes.CDLL(None).prctl(subreaper, 1, 0, 0, 0)
        except (OSError, AttributeError):
            self._adopting = False


class TellGuardian:
    """The shape of what Family calls: one line of text, never waiting, never raising."""

    def __call__(self, line: str) -> None: ...


def _bury(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
