"""bridge.io.family: marks, what the guardian is told, and whose the orphans are."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from bridge.io import family as module
from bridge.io.family import Family
from bridge.io.proctable import Proc


class Child:
    """Real children for lineages to stand on."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.processes: list[subprocess.Popen[bytes]] = []

    def add(self) -> tuple[int, str]:
        mark = self.family.mark(None)
        process = subprocess.Popen(
            ["sleep", "1000"], start_new_session=True, env={**os.environ, module.MARK: mark}
        )
        self.processes.append(process)
        return process.pid, mark


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def family(told: list[str]) -> Family:
    return Family("token", told.append, exclusive=True)


@pytest.fixture
def child(family: Family) -> Iterator[Child]:
    child = Child(family)
    yield child
    for process in child.processes:
        process.kill()
        process.wait()


def table_of(*procs: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "processes", lambda: iter(procs))
    monkeypatch.setattr(module, "children", lambda: [p for p in procs if p.ppid == os.getpid()])


def test_marks_differ_and_follow_the_mark_of_an_outer_family():
    family = Family("token")
    assert family.mark(None) == "token:1:"
    assert family.mark("outer:4:") == "outer:4:,token:2:"
    assert family.mark("") == "token:3:"
    assert Family().token != Family().token


def test_a_child_s_own_mark_is_told_from_the_outer_one_and_from_a_longer_number(family, child):
    pids = [child.add() for _ in range(2)]
    first, second = (family.add(pid, f"outer:2:,{mark}") for pid, mark in pids)
    assert [proc.pid for proc in family.members(first)] == [pids[0][0]]
    assert [proc.pid for proc in family.members(second)] == [pids[1][0]]


def test_the_guardian_is_told_of_roots_that_come_and_go(family, child, told):
    pid, mark = child.add()
    lineage = family.add(pid, mark)
    assert told == [f"+{pid} {lineage.start}\n"]
    family.discard(lineage)
    family.discard(lineage)
    assert told[1:] == [f"-{pid} {lineage.start}\n"]


def test_an_orphan_without_a_mark_belongs_to_the_only_one_it_can_come_from(
    family, child, monkeypatch
):
    us = os.getpid()
    first = family.add(*child.add())
    orphan = Proc(9001, us, 9001, 9001, first.start + 1, False)
    table_of(orphan, monkeypatch=monkeypatch)
    second = family.add(*child.add())
    second.start = first.start + 2
    assert family.members(second) == []
    assert family.members(first) == [orphan]


def test_an_orphan_that_two_can_have_left_waits_for_the_last_of_them(family, child, monkeypatch):
    first, second = family.add(*child.add()), family.add(*child.add())
    orphan = Proc(9001, os.getpid(), 9001, 9001, second.start + 1, False)
    table_of(orphan, monkeypatch=monkeypatch)
    assert family.members(first) == []
    family.discard(first)
    assert family.members(second) == [orphan]


def test_what_is_spared_or_of_our_session_is_no_orphan(family, child, told, monkeypatch):
    lineage = family.add(*child.add())
    us, later = os.getpid(), lineage.start + 1
    helper = Proc(9001, us, 9001, 9001, later, False)
    mate = Proc(9002, us, os.getpgrp(), os.getsid(0), later, False)
    foreign = Proc(9003, 1, 9003, 9003, later, False)
    table_of(helper, mate, foreign, monkeypatch=monkeypatch)
    family.spare(9001)
    assert told[-1] == "=9001 0\n"
    assert family.members(lineage) == []
    family.chores()
    assert told[-1] == "=9001 0\n"


def test_a_child_being_started_is_no_orphan(family, child, monkeypatch):
    lineage = family.add(*child.add())
    newborn = Proc(9001, os.getpid(), 9001, 9001, lineage.start + 1, False)
    table_of(newborn, monkeypatch=monkeypatch)
    family.starting += 1
    assert family.members(lineage) == []
    family.starting -= 1
    assert family.members(lineage) == [newborn]


def test_only_an_exclusive_family_claims_leaders_of_sessions(child, monkeypatch):
    family = Family()
    child.family = family
    lineage = family.add(*child.add())
    leader = Proc(9001, os.getpid(), 9001, 9001, lineage.start + 1, False)
    member = Proc(9002, os.getpid(), 9000, 9000, lineage.start + 1, False)
    table_of(leader, member, monkeypatch=monkeypatch)
    assert family.members(lineage) == [member]


def test_the_chores_tell_the_guardian_of_orphans_once(family, told, monkeypatch):
    orphan = Proc(9001, os.getpid(), 9001, 9001, 5, False)
    table_of(orphan, monkeypatch=monkeypatch)
    family.chores()
    family.chores()
    assert told == ["+9001 5\n"]
    table_of(monkeypatch=monkeypatch)
    family.chores()
    assert told == ["+9001 5\n", "-9001 5\n"]


def test_a_dead_orphan_is_buried_at_the_second_sight(family, monkeypatch):
    buried: list[int] = []
    monkeypatch.setattr(module, "_bury", buried.append)
    monkeypatch.setattr(module, "_UNREAPED_AFTER", 0)
    corpse = Proc(9001, os.getpid(), 9001, 9001, 5, True)
    table_of(corpse, monkeypatch=monkeypatch)
    family.chores()
    assert buried == []
    family.chores()
    assert buried == [9001]


def test_a_child_waited_for_by_others_is_not_taken_from_them(family):
    process = subprocess.Popen(["sh", "-c", "exit 3"], start_new_session=True)
    family.chores()
    family.chores()
    assert process.wait(10) == 3


def test_a_dead_root_is_left_to_its_process(family, child, monkeypatch):
    monkeypatch.setattr(module, "_UNREAPED_AFTER", 0)
    pid, mark = child.add()
    lineage = family.add(pid, mark)
    child.processes[0].kill()
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    for _ in range(3):
        family.chores()
        assert family.members(lineage) == []
    assert child.processes[0].wait(10) == -9
