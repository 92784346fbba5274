"""Lines from pipes, files and terminals, and questions that are called off."""

import os
import pty
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from bridge.cli.keyboard import Keyboard

pytestmark = pytest.mark.anyio


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)


async def test_lines_come_one_by_one_and_the_last_without_its_end(pipe: tuple[int, int]) -> None:
    read, write = pipe
    os.write(write, "one\r\n\ntwö\nthree".encode())
    os.close(write)
    keyboard = Keyboard(read)
    assert keyboard.terminal is False
    assert [await keyboard.line() for _ in range(5)] == ["one", "", "twö", "three", None]
    keyboard.close()


async def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "prompts"
    file.write_text("one\ntwo\n")
    fd = os.open(file, os.O_RDONLY)
    keyboard = Keyboard(fd)
    assert [await keyboard.line() for _ in range(3)] == ["one", "two", None]
    keyboard.close()
    os.close(fd)


async def test_a_question_that_is_called_off_takes_no_line(pipe: tuple[int, int]) -> None:
    read, write = pipe
    keyboard = Keyboard(read)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await keyboard.line()
    os.write(write, b"for the next\n")
    keyboard.forget()
    assert await keyboard.line() == "for the next"
    os.close(write)
    keyboard.close()


async def test_what_was_typed_ahead_in_a_terminal_can_be_dropped() -> None:
    ours, theirs = pty.openpty()
    keyboard = Keyboard(theirs)
    assert keyboard.terminal is True
    os.write(ours, b"first\ntoo early\n")
    assert await keyboard.line() == "first"
    keyboard.forget()
    os.write(ours, b"yes\n")
    assert await keyboard.line() == "yes"
    keyboard.close()
    os.close(ours)
    os.close(theirs)
