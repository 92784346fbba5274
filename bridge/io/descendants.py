"""Which processes come of a child of ours, however they tried to leave.

Owns: `Kin`, a circle of processes that grows from scan to scan, and `Lineage`, the circle of one
child. Called by `bridge.io.family` (the daemon's side) and `bridge.io.guardian`.

Killing a child's process group is not enough: agents give each shell tool a session of its own,
launchers die before their workers, daemons fork twice. A process is kin if it carries the mark in
its environment, descends from kin, or is in a session of one: no process enters a session but by
being forked in it. One scan is never the last word: forks race it.
"""

import os

from bridge.io.proctable import Proc, last_pid, look_up, marked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_DOUBTED = 6


class Kin:
    """A growing circle of processes: its founders, whoever carries its mark, what they start, and
    who shares a session with one of them. Only what started at tick `since` or later is asked for
    its mark; sessions in `foreign` are never drawn in."""

    def __init__(
        self, mark: str, founders: "Iterable[tuple[int, int]]", since: int, foreign: set[int]
    ) -> None:
        self._mark = mark.encode()
        self._since = since
        self._foreign = foreign
        self._known = set(founders)
        self._sessions = {pid for pid, _ in self._known}

    @property
    def has_grown(self) -> bool:
        """Whether it was ever seen to have more than one member."""
        return len(self._known) > 1

    def knows(self, proc: Proc) -> bool:
        return proc.key in self._known

    def admit(self, procs: "Iterable[Proc]") -> None:
        """Takes these in; who comes of them is found by the next `members`."""
        self._known.update(proc.key for proc in procs)

    def members(
        self, table: "Iterable[Proc]", strike: "Callable[[Proc], object] | None" = None
    ) -> list[Proc]:
        """Who of the table is of the circle, the dead included. They are known from then on, so
        that one found once is found again when its parents are gone and its mark is washed off.

        `strike` is called for those that show at first sight, while the table is still being
        read: what forks and exits all the time is gone by the end of it.
        """
        us = os.getpid()
        children: dict[int, list[Proc]] = {}
        sessions: dict[int, list[Proc]] = {}
        found: dict[int, Proc] = {}
        waiting: list[Proc] = []
        for proc in table:
            if proc.pid <= 1 or proc.pid == us:
                continue
            children.setdefault(proc.ppid, []).append(proc)
            if proc.sid not in self._foreign:
                sessions.setdefault(proc.sid, []).append(proc)
            if proc.key in self._known or proc.sid in self._sessions or self._marked(proc):
                waiting.append(proc)
                if strike is not None and not proc.dead:
                    strike(proc)
        while waiting:
            proc = waiting.pop()
            if proc.pid not in found:
                found[proc.pid] = proc
                waiting += children.pop(proc.pid, ())
                waiting += sessions.pop(proc.sid, ())
        members = list(found.values())
        self.admit(members)
        self._sessions.update(proc.sid for proc in members if proc.sid not in self._foreign)
        return members

    def _marked(self, proc: Proc) -> bool:
        return not proc.dead and proc.start >= self._since and marked(proc.pid, self._mark)


class Calm:
    """Whether empty scans can be believed. One can miss a process that is forked while its parent
    exits; `least` in a row will not, if nothing at all was forked meanwhile."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._empty = 0
        self._last = -1

    def after(self, members: list[Proc]) -> bool:
        """Takes note of one more scan's living members; tells whether it may be the last."""
        last = last_pid()
        quiet, self._last = last == self._last, last
        self._empty = 0 if members else self._empty + 1
        return self._empty >= (self._least if quiet or self._least == 1 else _DOUBTED)


class Lineage(Kin):
    """A child of ours, the root, and all that comes of it."""

    def __init__(self, pid: int, mark: str) -> None:
        self.pid = pid
        root = look_up(pid)
        self.start = root.start if root else 0
        super().__init__(mark, {(pid, self.start)}, self.start, {os.getsid(0), os.getpgrp()})
