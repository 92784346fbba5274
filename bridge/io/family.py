"""The family of this daemon: all its children and all that came of them.

Owns: the marks by which processes are known again, the lineages there are, and the orphans: on
Linux the daemon is their subreaper, so they come to it, are still found, and are buried when they
die. Rule: a root is never buried here; its number, which is its group's and session's too, must
not pass to a stranger while it is signalled. Called by `bridge.io.process`.
"""

import os
import time

from bridge.io.descendants import Lineage
from bridge.io.proctable import PROC, Proc, children, marked, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MARK = "ACP_MCP_BRIDGE_FAMILY"
_UNREAPED_AFTER = 1.0


class Family:
    """All lineages of this daemon. `token` is unguessable and shared with the guardian only;
    `tell` lets the guardian know of roots; `spare` are other children of ours, left alone;
    `exclusive` says that there are no more of those: every other child is started by `spawn`."""

    def __init__(
        self,
        token: str | None = None,
        tell: "Callable[[str], object]" = len,
        spare: frozenset[int] = frozenset(),
        exclusive: bool = False,
    ) -> None:
        self.token = token or os.urandom(16).hex()
        self.starting = 0
        """Children that may exist already and were not yet added: no orphans, for a scan under
        way in a thread."""
        self._tell = tell
        self._spare = spare
        self._count = 0
        self._lineages: dict[int, Lineage] = {}
        self._corpses: dict[tuple[int, int], float] = {}
        self._orphans: dict[tuple[int, int], str] = {}
        self._exclusive = exclusive
        self._adopting = False

    def spare(self, pid: int) -> None:
        """Leaves another child of ours alone, here and in the guardian's last sweep."""
        self._spare |= {pid}
        self._tell(f"={pid} 0\n")

    def mark(self, inherited: str | None) -> str:
        """The value of MARK for a new child. A daemon that is itself of a family keeps that
        family's mark before its own, so that the outer one finds the inner one's processes."""
        self._count += 1
        mark = f"{self.token}:{self._count}:"
        return f"{inherited},{mark}" if inherited else mark

    def add(self, pid: int, mark: str) -> Lineage:
        """Takes a child just started with `mark` in its environment into the family."""
        lineage = Lineage(pid, mark.rpartition(",")[2])
        self._lineages[pid] = lineage
        self._tell(f"+{pid} {lineage.start}\n")
        self._adopt_orphans()
        return lineage

    def discard(self, lineage: Lineage) -> None:
        """A lineage whose root has been reaped and which has been swept."""
        if self._lineages.pop(lineage.pid, None) is not None:
            self._tell(f"-{lineage.pid} {lineage.start}\n")

    def members(
        self, lineage: Lineage, strike: "Callable[[Proc], object] | None" = None
    ) -> list[Proc]:
        """The living of a lineage, and with them the orphans that came to us and can be nobody
        else's: where the environment was cleared, nothing but that tells whose they are. Its dead
        that are ours to bury are buried. Reads the process table: call it in a thread.
        """
        table: list[Proc] = []
        members = lineage.members(_noted(processes(), table), strike)
        if strays := self._strays(lineage, table):
            lineage.admit(strays)
            members = lineage.members(table)
        us = os.getpid()
        for proc in members:
            if proc.dead and proc.ppid == us and proc.pid not in self._lineages:
                _bury(proc.pid)
        return [proc for proc in members if not proc.dead]

    def _strays(self, lineage: Lineage, table: list[Proc]) -> list[Proc]:
        """Children of ours that we did not start, no lineage knows, and only this one can have
        brought about, the others being younger."""
        us = os.getpid()
        lineages = list(self._lineages.values())
        strays: list[Proc] = []
        for proc in table if self._adopting and not self.starting else ():
            if proc.ppid != us or proc.dead or not self._adopted(proc):
                continue
            elders = [other for other in lineages if other.start <= proc.start]
            known = any(other.knows(proc) for other in lineages)
            if elders == [lineage] and not known and not marked(proc.pid, self.token.encode()):
                strays.append(proc)
        return strays

    def _adopted(self, child: Proc) -> bool:
        """Whether a child of ours is an orphan that came to us, and not one started here."""
        if child.pid in self._lineages or child.pid in self._spare:
            return False
        # One started here by other means is in our session or leads its own.
        if child.sid in (os.getsid(0), os.getpgrp()):
            return False
        return self._exclusive or child.sid != child.pid

    def chores(self) -> None:
        """Looks after the orphans we adopted: the dead are buried, once nobody has waited for
        them between two calls, and the guardian is told of the living, since their environment
        may have been cleared. Takes some 20 µs a child."""
        corpses: dict[tuple[int, int], float] = {}
        orphans: dict[tuple[int, int], str] = {}
        now = time.monotonic()
        for proc in children():
            if not self._adopted(proc):
                continue
            if not proc.dead:
                orphans[proc.key] = f"{proc.pid} {proc.start}\n"
            elif proc.key not in self._corpses or now - self._corpses[proc.key] < _UNREAPED_AFTER:
                corpses[proc.key] = self._corpses.get(proc.key, now)
            else:
                _bury(proc.pid)
        for key in orphans.keys() - self._orphans.keys():
            self._tell("+" + orphans[key])
        for key in self._orphans.keys() - orphans.keys():
            self._tell("-" + self._orphans[key])
        self._corpses, self._orphans = corpses, orphans

    def _adopt_orphans(self) -> None:
        """Makes us the parent of our descendants' orphans, where the system can (Linux).

        What a first child orphans before this is done goes to init; its mark still tells."""
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


def _noted(procs: "Iterator[Proc]", notes: list[Proc]) -> "Iterator[Proc]":
    for proc in procs:
        notes.append(proc)
        yield proc


def _bury(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
