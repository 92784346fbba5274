"""bridge.io.pipes: descriptors as streams on three loops, whatever stands behind them."""

import os
import pty
import socket
import threading
import tty
from collections.abc import Callable

import anyio
import pytest

from bridge.io.pipes import FdReader, FdWriter, pollable, reopen

pytestmark = pytest.mark.anyio

MIB = 1 << 20


def pipe() -> tuple[FdReader, FdWriter]:
    reading, writing = os.pipe()
    return FdReader(reading), FdWriter(writing)


def sockets() -> tuple[FdReader, FdWriter]:
    near, far = socket.socketpair()
    return FdReader(near.detach()), FdWriter(far.detach())


def terminal() -> tuple[FdReader, FdWriter]:
    master, slave = pty.openpty()
    tty.setraw(slave)
    os.set_blocking(slave, False)
    return FdReader(master), FdWriter(slave)


KINDS = [pipe, sockets, terminal]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
async def pair(request: pytest.FixtureRequest):
    reader, writer = request.param()
    yield reader, writer
    writer.close()
    reader.close()


async def everything(reader: FdReader) -> bytes:
    chunks: list[bytes] = []
    while chunk := await reader.receive():
        chunks.append(chunk)
    return b"".join(chunks)


async def exactly(reader: FdReader, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        chunk = await reader.receive(count - len(data))
        assert chunk, f"ended {count - len(data)} bytes early"
        data += chunk
    return bytes(data)


async def test_frames_come_out_whole_and_in_order(pair):
    reader, writer = pair
    frames = [os.urandom(size) for size in (1, 0, 70_000, 3, 500_000, 2)]
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.run)
            for frame in frames:
                writer.post(frame[:2], b"", frame[2:])
            assert await exactly(reader, sum(map(len, frames))) == b"".join(frames)
            await writer.drained()
            assert writer.queued == 0
            tasks.cancel_scope.cancel()


async def test_a_frame_of_a_hundred_mebibytes_passes():
    reader, writer = pipe()
    frame = os.urandom(MIB) * 100
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.run)
            writer.post(frame)
            assert 0 < writer.queued < len(frame)
            assert await exactly(reader, len(frame)) == frame
            await writer.drained()
            writer.close()
    reader.close()


async def test_more_frames_than_one_system_call_takes_are_written():
    reader, writer = pipe()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.run)
            writer.post(bytes(MIB))
            for number in range(5000):
                writer.post(b"%06d" % number)
            assert (await exactly(reader, MIB)).strip(b"\0") == b""
            wanted = b"".join(b"%06d" % number for number in range(5000))
            assert await exactly(reader, len(wanted)) == wanted
            writer.close()
    reader.close()


async def test_cancelling_whoever_waits_for_a_frame_does_not_tear_it(pair):
    reader, writer = pair
    frame = os.urandom(2 * MIB)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.run)
            with anyio.CancelScope() as scope:
                writer.post(frame)
                scope.cancel()
                await writer.drained()
            assert scope.cancelled_caught
            writer.post(b"next")
            assert await exactly(reader, len(frame)) == frame
            assert await exactly(reader, 4) == b"next"
            tasks.cancel_scope.cancel()


async def test_a_writer_whose_run_was_cancelled_goes_on_where_it_was():
    reader, writer = pipe()
    frame = os.urandom(MIB)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.run)
            writer.post(frame)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.run)
            assert await exactly(reader, len(frame)) == frame
            await writer.drained()
            writer.close()
    reader.close()


async def test_all_who_wait_for_the_drain_are_woken():
    reader, writer = pipe()
    woken: list[int] = []

    async def wait(number: int) -> None:
        await writer.drained()
        woken.append(number)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            writer.post(bytes(MIB))
            for number in range(3):
                tasks.start_soon(wait, number)
            await anyio.wait_all_tasks_blocked()
            assert woken == []
            tasks.start_soon(writer.run)
            await exactly(reader, MIB)
            await writer.drained()
            writer.close()
    assert sorted(woken) == [0, 1, 2]
    reader.close()


@pytest.mark.parametrize("kind", [pipe, sockets], ids=lambda kind: kind.__name__)
async def test_a_reader_that_is_gone_breaks_the_writer_once(kind: Callable):
    reader, writer = kind()
    broken: list[bool] = []
    writer.on_broken = lambda: broken.append(True)
    reader.close()
    writer.post(b"into the void")
    writer.post(b"and again")
    assert writer.broken
    assert writer.queued == 0
    assert broken == [True]
    with anyio.fail_after(10):
        await writer.run()
        await writer.drained()
    writer.close()


@pytest.mark.parametrize("kind", [pipe, sockets], ids=lambda kind: kind.__name__)
async def test_a_reader_that_leaves_in_mid_frame_breaks_the_writer(kind: Callable):
    reader, writer = kind()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.run)
            writer.post(bytes(8 * MIB))
            tasks.start_soon(writer.drained)
            await anyio.wait_all_tasks_blocked()
            reader.close()
    assert writer.broken
    writer.close()


@pytest.mark.parametrize("kind", [pipe, sockets], ids=lambda kind: kind.__name__)
async def test_a_reader_that_leaves_an_idle_writer_is_noticed(kind: Callable):
    reader, writer = kind()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.watch)
            tasks.start_soon(writer.run)
            await anyio.wait_all_tasks_blocked()
            assert not writer.broken
            reader.close()
    assert writer.broken
    writer.close()


async def test_the_end_of_the_stream_is_an_empty_read_for_good(pair):
    reader, writer = pair
    writer.post(b"last")
    with anyio.fail_after(10):
        assert await exactly(reader, 4) == b"last"
        writer.close()
        assert await reader.receive() == b""
        assert await reader.receive() == b""


async def test_closing_a_reader_ends_a_waiting_receive(pair):
    reader, _ = pair
    got: list[bytes] = []

    async def receive() -> None:
        got.append(await reader.receive())

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            await anyio.wait_all_tasks_blocked()
            reader.close()
    assert got == [b""]
    assert await reader.receive() == b""
    reader.close()


async def test_closing_a_writer_ends_a_waiting_run_and_drain(pair):
    _, writer = pair
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.run)
            writer.post(bytes(4 * MIB))
            tasks.start_soon(writer.drained)
            await anyio.wait_all_tasks_blocked()
            writer.close()
    assert writer.closed
    writer.post(b"ignored")
    assert writer.queued == 0
    writer.close()


async def test_a_cancelled_receive_loses_nothing(pair):
    reader, writer = pair
    with anyio.move_on_after(0.01):
        await reader.receive()
    writer.post(b"kept")
    with anyio.fail_after(10):
        assert await exactly(reader, 4) == b"kept"


# What cannot be polled


async def test_regular_files_are_read_to_their_end_and_written(tmp_path):
    path = tmp_path / "file"
    writer = FdWriter(os.open(path, os.O_WRONLY | os.O_CREAT))
    data = os.urandom(3 * MIB)
    writer.post(data[:MIB])
    writer.post(data[MIB:])
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.run)
            await writer.drained()
            writer.close()
        reader = FdReader(os.open(path, os.O_RDONLY))
        assert await everything(reader) == data
    reader.close()
    assert await reader.receive() == b""


async def test_the_null_device_is_at_its_end_and_takes_everything():
    reader = FdReader(os.open("/dev/null", os.O_RDONLY))
    writer = FdWriter(os.open("/dev/null", os.O_WRONLY))
    writer.post(bytes(MIB))
    assert writer.queued == 0
    with anyio.fail_after(10):
        assert await reader.receive() == b""
        await writer.watch()
    reader.close()
    writer.close()


async def test_a_blocking_terminal_blocks_neither_the_loop_nor_the_exit():
    master, slave = pty.openpty()
    tty.setraw(slave)
    reader = FdReader(os.dup(slave))
    got: list[bytes] = []

    async def receive() -> None:
        got.append(await reader.receive())

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            await anyio.wait_all_tasks_blocked()
            os.write(master, b"typed")
    assert got == [b"typed"]
    with anyio.move_on_after(0.01):
        await reader.receive()
    # No thread is left in a read that only another key press would end.
    assert not [thread for thread in threading.enumerate() if "worker" in thread.name]
    reader.close()
    os.close(master)
    os.close(slave)


# reopen


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
async def test_reopening_leaves_the_inherited_descriptor_blocking(kind: str):
    near, far = os.pipe() if kind == "pipe" else pty.openpty()
    if kind == "terminal":
        tty.setraw(near)
    assert pollable(near)
    writer = FdWriter(reopen(far, os.O_WRONLY))
    reader = FdReader(reopen(near, os.O_RDONLY)) if kind == "pipe" else FdReader(os.dup(near))
    assert os.get_blocking(far)
    assert os.get_blocking(near)
    writer.post(b"through")
    with anyio.fail_after(10):
        assert await exactly(reader, 7) == b"through"
    reader.close()
    writer.close()
    os.close(near)
    os.close(far)


async def test_what_cannot_be_reopened_is_duplicated(tmp_path):
    near, far = socket.socketpair()
    copy = reopen(near.fileno(), os.O_RDWR)
    assert not os.get_blocking(copy)
    os.close(copy)
    near.close()
    far.close()
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    copy = reopen(fd, os.O_RDWR)
    assert os.fstat(fd).st_ino == os.fstat(copy).st_ino
    assert not pollable(copy)
    os.close(copy)
    os.close(fd)
