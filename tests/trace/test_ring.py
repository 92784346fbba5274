"""The ring: what is posted arrives, in order and whole, and a peer that is gone stops nothing."""

import os
import threading
from collections.abc import Callable
from functools import partial

import anyio
import pytest

from bridge.trace import ring as module
from bridge.trace.ring import _ASLEEP, _NAPPING, _STATE, _TAIL, Ring, RingReader, RingWriter

pytestmark = pytest.mark.anyio


class Reading:
    """A reader in a thread, in place of the scribe's process."""

    def __init__(self, ring: Ring) -> None:
        # The writer's side closes these; a fork would have given the reader its own.
        ring.written_end, mine = os.dup(ring.written_end), ring.written_end
        ring.read_end, read = os.dup(ring.read_end), ring.read_end
        self._fds = mine, read
        self._reader = RingReader(ring._memory, mine, read)
        self.data = bytearray()
        self.may_read = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.may_read.wait()
        while data := self._reader.receive():
            self.data += data

    def join(self) -> bytes:
        self.may_read.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
        for fd in self._fds:
            os.close(fd)
        return bytes(self.data)


def broken() -> None:
    raise AssertionError("the reader is there")


async def drained(queued: Callable[[], int]) -> None:
    with anyio.fail_after(30):
        while queued():  # noqa: ASYNC110 - another thread's progress
            await anyio.sleep(0.002)


async def test_much_more_than_the_ring_holds_arrives_whole() -> None:
    ring = Ring()
    reading = Reading(ring)
    writer = ring.writer(broken)
    parts = [bytes([index % 251]) * (index * 37 % 9000) for index in range(4000)]
    parts.append(os.urandom(20 << 20))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)
        for part in parts:
            writer.post(part[:3], part[3:])
        reading.may_read.set()
        await drained(lambda: writer.queued)
        tasks.cancel_scope.cancel()
    writer.finish(5)
    assert reading.join() == b"".join(parts)


async def test_what_is_little_stays_at_the_start_of_the_memory() -> None:
    ring = Ring()
    reading = Reading(ring)
    reading.may_read.set()
    writer = ring.writer(broken)
    parts = [bytes([index]) * 300 for index in range(100)]
    for part in parts:
        writer.post(part[:100], part[100:])
        assert bytes(ring._memory[4096 : 4096 + 300]) == part
        await drained(partial(_unread, writer))
    # However much more than it holds has passed, a post as large as the ring finds room.
    parts.append(os.urandom(module._SIZE))
    writer.post(parts[-1])
    assert not writer.queued
    writer.finish(5)
    assert reading.join() == b"".join(parts)


def _unread(writer: RingWriter) -> int:
    return writer._head - writer._words[_TAIL]


async def test_a_reader_that_does_not_read_holds_up_nobody() -> None:
    ring = Ring()
    reading = Reading(ring)
    writer = ring.writer(broken)
    for _ in range(100):
        writer.post(b"x" * (1 << 20))
    assert writer.queued > 90 << 20
    writer.finish(0)
    assert len(reading.join()) == (100 << 20) - writer.queued


async def test_what_was_posted_before_the_loop_and_never_flushed_is_written_at_the_end() -> None:
    ring = Ring()
    reading = Reading(ring)
    writer = ring.writer(broken)
    writer.post(b"a", b"b")
    writer.finish(5)
    assert reading.join() == b"ab"


async def test_a_reader_that_is_gone_is_reported_once() -> None:
    ring = Ring()
    gone = anyio.Event()
    told: list[int] = []

    def broken() -> None:
        told.append(1)
        gone.set()

    writer = ring.writer(broken)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)
        with anyio.fail_after(30):
            await gone.wait()
    for _ in range(3):
        writer.post(b"x" * (3 << 20))
    writer.finish(0)
    assert told == [1]
    assert writer.queued == 0


async def state(ring: Ring, wanted: int) -> None:
    while ring._memory[:4096].cast("Q")[_STATE] != wanted:  # noqa: ASYNC110 - a thread's
        await anyio.sleep(0.002)


async def test_a_reader_that_naps_is_woken_when_much_has_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_NAP_MS", 1_000_000)
    ring = Ring()
    reading = Reading(ring)
    reading.may_read.set()
    writer = ring.writer(broken)
    sizes = 1, 100, module._MUCH - 100, 1
    with anyio.fail_after(30):
        await state(ring, _ASLEEP)
        writer.post(b"a" * sizes[0])
        await state(ring, _NAPPING)
        writer.post(b"b" * sizes[1])
        writer.post(b"c" * sizes[2])
        assert len(reading.data) == sizes[0]
        writer.post(b"d" * sizes[3])
        while len(reading.data) < sum(sizes):  # noqa: ASYNC110 - a thread's
            await anyio.sleep(0.002)
    writer.finish(5)
    assert reading.join() == b"".join(
        letter * size for letter, size in zip((b"a", b"b", b"c", b"d"), sizes, strict=True)
    )


async def test_a_reader_that_sleeps_is_woken_by_each_post() -> None:
    ring = Ring()
    reading = Reading(ring)
    reading.may_read.set()
    writer = ring.writer(broken)
    for size in range(1, 4):
        with anyio.fail_after(30):
            await state(ring, _ASLEEP)
            writer.post(b"y")
            while len(reading.data) < size:  # noqa: ASYNC110 - a thread's
                await anyio.sleep(0.002)
    writer.finish(5)
    assert reading.join() == b"yyy"


async def test_what_is_posted_is_read_though_its_writer_never_comes_back_to_it() -> None:
    ring = Ring()
    reading = Reading(ring)
    writer = ring.writer(broken)
    writer.post(b"the last words of a process that is killed")
    os.close(ring._written)
    assert reading.join() == b"the last words of a process that is killed"
    os.close(ring._read)


async def test_a_buffer_that_is_used_again_is_posted_as_it_was() -> None:
    ring = Ring()
    reading = Reading(ring)
    writer = ring.writer(broken)
    buffer = bytearray(b"a" * (3 << 20))
    writer.post(buffer)
    writer.post(memoryview(buffer))
    buffer[:] = b"b" * len(buffer)
    reading.may_read.set()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)
        await drained(lambda: writer.queued)
        tasks.cancel_scope.cancel()
    writer.finish(5)
    assert reading.join() == b"a" * (6 << 20)
