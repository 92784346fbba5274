"""bridge.io.descendants: who is kin, on process tables made up for the purpose."""

import os

import pytest

from bridge.io import descendants
from bridge.io.descendants import Calm, Kin, Lineage
from bridge.io.proctable import Proc

HOST, STRANGER = 50, 60


@pytest.fixture
def marks(monkeypatch) -> set[int]:
    """The processes that carry the mark."""
    carriers: set[int] = set()
    monkeypatch.setattr(
        descendants, "marked", lambda pid, mark: mark == b"mark" and pid in carriers
    )
    return carriers


def proc(pid: int, ppid: int, sid: int, start: int = 100, *, dead: bool = False) -> Proc:
    return Proc(pid, ppid, sid, sid, start, dead)


def kin(*founders: tuple[int, int], since: int = 100) -> Kin:
    return Kin("mark", founders, since, {HOST})


def pids(members: list[Proc]) -> list[int]:
    return sorted(member.pid for member in members)


def test_descendants_are_kin_in_whatever_order_the_table_lists_them(marks):
    table = [proc(1002, 1001, 1002), proc(1001, 1000, 1001), proc(1000, 9, 1000)]
    table += [proc(STRANGER, 9, STRANGER)]
    for order in (table, table[::-1]):
        assert pids(kin((1000, 100)).members(order)) == [1000, 1001, 1002]


def test_all_of_a_session_are_kin_once_one_of_it_is(marks):
    table = [proc(1000, 9, 1000), proc(1001, 1000, 1001), proc(1002, 1, 1001), proc(70, 1, 70)]
    assert pids(kin((1000, 100)).members(table)) == [1000, 1001, 1002]


def test_a_carrier_of_the_mark_is_kin_wherever_it_is(marks):
    marks |= {2000}
    table = [proc(2000, 1, 2000), proc(2001, 2000, 2001), proc(70, 1, 70)]
    assert pids(kin((1000, 100)).members(table)) == [2000, 2001]


def test_the_old_are_not_asked_for_their_mark(marks):
    marks |= {2000}
    assert kin(since=101).members([proc(2000, 1, 2000, start=100)]) == []


def test_the_host_s_session_is_never_drawn_in(marks):
    marks |= {2000}
    table = [proc(2000, 1, HOST), proc(HOST, 1, HOST), proc(51, HOST, HOST), proc(2001, 2000, HOST)]
    assert pids(kin().members(table)) == [2000, 2001]


def test_neither_we_nor_the_first_process_are_ever_kin(marks):
    marks |= {1, os.getpid()}
    table = [proc(1, 0, 1), proc(os.getpid(), 1, 77), proc(78, os.getpid(), 78)]
    assert kin((1, 100), (os.getpid(), 100)).members(table) == []


def test_one_found_once_is_found_again_without_parents_and_mark(marks):
    circle = kin((1000, 100))
    circle.members([proc(1000, 9, 1000), proc(1001, 1000, 1001)])
    assert circle.has_grown
    assert pids(circle.members([proc(1001, 1, 1001)])) == [1001]
    # And so is one it forked before it died, by its session.
    assert pids(circle.members([proc(1005, 1, 1001)])) == [1005]


def test_a_number_taken_by_a_stranger_is_not_kin(marks):
    circle = kin((1000, 100))
    circle.members([proc(1000, 9, 1000), proc(1001, 1000, 1000)])
    stranger = proc(1001, 1, 70, start=999)
    assert circle.members([stranger]) == []
    assert not circle.knows(stranger)


def test_the_admitted_are_kin_from_then_on(marks):
    circle = kin((1000, 100))
    orphan = proc(3000, 9, 3000)
    assert circle.members([orphan]) == []
    circle.admit([orphan])
    assert pids(circle.members([orphan, proc(3001, 3000, 3001)])) == [3000, 3001]


def test_the_dead_are_kin_but_not_struck(marks):
    struck: list[int] = []
    circle = kin((1000, 100))
    table = [proc(1000, 9, 1000, dead=True), proc(1001, 1, 1000), proc(1002, 1001, 1002)]
    members = circle.members(table, lambda found: struck.append(found.pid))
    assert pids(members) == [1000, 1001, 1002]
    # The last shows only once the table is complete.
    assert struck == [1001]


def test_a_lineage_founds_itself_on_a_real_process(marks):
    lineage = Lineage(os.getppid(), "mark")
    assert lineage.start > 0
    assert not lineage.has_grown
    assert Lineage(2**22, "mark").start == 0


def test_one_empty_scan_is_enough_for_one_that_never_grew():
    assert Calm(1).after([])


def test_scans_are_believed_when_nothing_was_forked_between(monkeypatch):
    monkeypatch.setattr(descendants, "last_pid", lambda: 7)
    calm = Calm(2)
    assert not calm.after([])
    assert calm.after([])


def test_scans_with_forks_between_are_doubted_for_a_while(monkeypatch):
    numbers = iter(range(100))
    monkeypatch.setattr(descendants, "last_pid", lambda: next(numbers))
    calm = Calm(2)
    assert [calm.after([]) for _ in range(6)] == [False] * 5 + [True]


def test_a_member_found_begins_the_count_again(monkeypatch):
    monkeypatch.setattr(descendants, "last_pid", lambda: 7)
    calm = Calm(2)
    assert [calm.after(found) for found in ([], [proc(1, 1, 1)], [], [])] == [
        False,
        False,
        False,
        True,
    ]
