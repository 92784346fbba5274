"""bridge.agent.files: fs/read_text_file and fs/write_text_file on a real file system."""

import os
import stat
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.agent import files
from bridge.agent.files import Files
from bridge.errors import RequestFailed

pytestmark = pytest.mark.anyio

READ, WRITE = "fs/read_text_file", "fs/write_text_file"


async def read(path: object, **more: Any) -> str:
    with anyio.fail_after(10):
        return (await Files().answer(READ, {"sessionId": "s", "path": str(path), **more}))[
            "content"
        ]


async def refused(method: str, params: Any) -> RequestFailed:
    with pytest.raises(RequestFailed) as caught, anyio.fail_after(10):
        await Files().answer(method, params)
    return caught.value


async def test_a_method_that_there_is_not_is_refused_and_writes_nothing(tmp_path: Path):
    error = await refused("fs/append", {"path": str(tmp_path / "new"), "content": "x"})
    assert (error.code, error.message) == (-32601, "method not found: fs/append")
    assert os.listdir(tmp_path) == []


async def test_a_file_is_read_as_it_stands(tmp_path: Path):
    text = "\ufeffgrüße\r\nzwei\n\ndrei 🎉 ohne Ende"
    (tmp_path / "file").write_bytes(text.encode())
    assert await read(tmp_path / "file") == text
    assert await read(tmp_path / "file", line=None, limit=None, _meta={}) == text


@pytest.mark.parametrize(
    "line, limit, content",
    [
        (1, 2, "1\r\n2\n"),
        (2, 1, "2\n"),
        (3, None, "\n4"),
        (4, 10, "4"),
        (5, 1, ""),
        (99, None, ""),
        (2, 0, ""),
        (0, 1, "1\r\n"),
        (None, 1, "1\r\n"),
    ],
)
async def test_lines_count_from_one_and_keep_their_ends(
    line: int, limit: int, content: str, tmp_path: Path
):
    (tmp_path / "file").write_bytes(b"1\r\n2\n\n4")
    assert await read(tmp_path / "file", line=line, limit=limit) == content


async def test_an_empty_file_is_an_empty_text(tmp_path: Path):
    (tmp_path / "file").touch()
    assert await read(tmp_path / "file") == ""


async def test_a_file_of_proc_is_read_though_its_size_is_zero():
    assert "Name:" in await read("/proc/self/status")


async def test_a_missing_file_is_resource_not_found(tmp_path: Path):
    error = await refused(READ, {"path": str(tmp_path / "none" / "file")})
    assert error.code == -32002
    assert str(tmp_path / "none" / "file") in error.message
    assert error.data == {"path": str(tmp_path / "none" / "file")}


@pytest.mark.parametrize(
    "params, words",
    [
        ({"path": "relative/file"}, "path must be absolute, not 'relative/file'"),
        ({"path": "~/file"}, "must be absolute"),
        ({"path": ""}, "must be absolute"),
        ({"path": "/a\0b"}, "NUL"),
        ({}, "missing required field `path`"),
        ({"path": 7}, "$.path"),
        ({"path": "/x", "line": -1}, "$.line"),
        ({"path": "/x", "limit": "many"}, "$.limit"),
        (None, "invalid parameters"),
        ([1], "invalid parameters"),
    ],
)
async def test_parameters_that_make_no_sense_are_named(params: Any, words: str):
    error = await refused(READ, params)
    assert error.code == -32602
    assert words in error.message


@pytest.mark.parametrize(
    "content, words",
    [
        (b"PNG\0\1\2", "binary file"),
        (b"ok\xffno", "not UTF-8 text (byte 0xff at 2)"),
        ("text".encode("utf-16"), "not"),
    ],
)
async def test_what_is_not_text_is_refused(content: bytes, words: str, tmp_path: Path):
    (tmp_path / "file").write_bytes(content)
    error = await refused(READ, {"path": str(tmp_path / "file")})
    assert error.code == -32603
    assert words in error.message


async def test_a_directory_and_a_pipe_are_refused_without_waiting(tmp_path: Path):
    assert "it is a directory" in (await refused(READ, {"path": str(tmp_path)})).message
    assert (
        "it is a directory"
        in (await refused(WRITE, {"path": str(tmp_path), "content": ""})).message
    )
    os.mkfifo(tmp_path / "fifo")
    fifo = {"path": str(tmp_path / "fifo"), "content": "x"}
    assert "a device or a pipe" in (await refused(READ, fifo)).message
    assert (await refused(WRITE, fifo)).code == -32603


async def test_permission_denied_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # Root may do everything: the refusal itself is simulated.
    def refuse(*args: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    error = await refused(READ, {"path": str(tmp_path / "file")})
    assert (error.code, "permission denied" in error.message) == (-32603, True)


async def test_what_is_too_large_asks_for_line_and_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(files, "LARGEST", 100)
    (tmp_path / "file").write_text("x" * 40 + "\n" + "y" * 40 + "\n" + "z" * 40 + "\n")
    error = await refused(READ, {"path": str(tmp_path / "file")})
    assert (error.code, "line and limit" in error.message) == (-32603, True)
    assert await read(tmp_path / "file", line=2, limit=2) == "y" * 40 + "\n" + "z" * 40 + "\n"
    await refused(READ, {"path": str(tmp_path / "file"), "line": 1, "limit": 3})


async def test_lines_after_one_that_is_too_large_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(files, "LARGEST", 100)
    (tmp_path / "file").write_text("x" * 1000 + "\nsecond\n")
    assert await read(tmp_path / "file", line=2) == "second\n"


async def test_writing_makes_the_file_and_its_directories(tmp_path: Path):
    path = tmp_path / "new" / "deep" / "file.txt"
    result = await Files().answer(WRITE, {"sessionId": "s", "path": str(path), "content": "grün\n"})
    assert result == {}
    assert path.read_bytes() == "grün\n".encode()


async def test_writing_replaces_all_and_keeps_mode_and_links(tmp_path: Path):
    path, link = tmp_path / "script", tmp_path / "link"
    path.write_text("a longer text than the new one")
    path.chmod(0o755)
    link.symlink_to(path)
    await Files().write_text_file({"path": str(link), "content": "short"})
    assert path.read_text() == "short"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert link.is_symlink()


async def test_reading_and_writing_back_changes_nothing(tmp_path: Path):
    data = b"\xef\xbb\xbfa\r\nb\rc\n"
    (tmp_path / "file").write_bytes(data)
    text = await read(tmp_path / "file")
    await Files().write_text_file({"path": str(tmp_path / "file"), "content": text})
    assert (tmp_path / "file").read_bytes() == data


async def test_half_a_surrogate_pair_is_refused_before_anything_is_written(tmp_path: Path):
    path = tmp_path / "file"
    error = await refused(WRITE, {"path": str(path), "content": "ab\ud83d"})
    assert (error.code, "character 2" in error.message) == (-32602, True)
    assert not path.exists()
    assert (await refused(READ, {"path": "/\ud83d"})).code == -32602


async def test_a_file_in_the_place_of_a_directory_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    error = await refused(WRITE, {"path": str(tmp_path / "file" / "below"), "content": ""})
    assert (error.code, "not a directory" in error.message) == (-32603, True)
