"""The edit tool, on real files."""

import os
from pathlib import Path

import pytest

from bridge.loop_agent.toolbox import Result, ToolError
from bridge.loop_agent.tools.edit import LARGEST, Edit

pytestmark = pytest.mark.anyio


async def edit(cwd: Path, path: str, old: str, new: str, **more: object) -> Result:
    arguments = {"path": path, "old_string": old, "new_string": new, **more}
    return await Edit(str(cwd)).plan(arguments).run()


async def test_a_string_is_replaced_and_the_mode_stays(tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text("echo one\n")
    file.chmod(0o755)
    await edit(tmp_path, "run.sh", "one", "two")
    assert file.read_text() == "echo two\n"
    assert file.stat().st_mode & 0o777 == 0o755
    assert os.listdir(tmp_path) == ["run.sh"]


async def test_a_file_is_created_with_its_directories(tmp_path: Path) -> None:
    plan = Edit(str(tmp_path)).plan({"path": "a/b.txt", "old_string": "", "new_string": "é\n"})
    path = str(tmp_path / "a/b.txt")
    assert plan.preview == [{"type": "diff", "path": path, "oldText": None, "newText": "é\n"}]
    result = await plan.run()
    assert Path(path).read_bytes() == "é\n".encode()  # noqa: ASYNC240
    assert result.raw == {"path": path, "created": True}
    umask = os.umask(0)
    os.umask(umask)
    assert Path(path).stat().st_mode & 0o777 == 0o666 & ~umask  # noqa: ASYNC240


async def test_line_ends_stay_what_they_were(tmp_path: Path) -> None:
    file = tmp_path / "dos.txt"
    file.write_bytes(b"a\r\nb\r\nc\r\n")
    await edit(tmp_path, "dos.txt", "a\nb", "1\n2")
    assert file.read_bytes() == b"1\r\n2\r\nc\r\n"


async def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("one")
    (tmp_path / "link").symlink_to("real")
    await edit(tmp_path, "link", "one", "two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "two"


async def test_every_occurrence_only_where_asked(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("a a a")
    with pytest.raises(ToolError, match="occurs 3 times"):
        await edit(tmp_path, "x", "a", "b")
    await edit(tmp_path, "x", "a", "b", replace_all=True)
    assert file.read_text() == "b b b"


@pytest.mark.parametrize(
    ("path", "old", "new", "words"),
    [
        ("x", "nope", "y", "does not occur"),
        ("x", "", "y", "exists and is not empty"),
        ("x", "text", "text", "the same"),
        ("missing", "a", "b", "does not exist"),
        ("binary", "a", "b", "not a UTF-8"),
        ("large", "a", "b", "over"),
        (".", "a", "b", "cannot be read"),
        ("a\0b", "", "y", "'path' holds a NUL"),
        ("half \ud83d", "", "y", "'path' holds half of a character"),
        ("new", "", "half \ud83d", "'new_string' holds half of a character"),
        ("x", "half \ud83d", "y", "'old_string' holds half of a character"),
        ("pipe", "a", "b", "no regular file"),
        ("pipe", "", "b", "no regular file"),
        ("/dev/zero", "a", "b", "no regular file"),
        ("round", "a", "b", "symbolic links"),
        ("x/below", "", "b", "Not a directory"),
    ],
)
async def test_what_cannot_be_done_is_said(
    tmp_path: Path, path: str, old: str, new: str, words: str
) -> None:
    (tmp_path / "x").write_text("text")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "large").write_bytes(b"a" * (LARGEST + 1))
    (tmp_path / "round").symlink_to("round")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(ToolError, match=words):
        await edit(tmp_path, path, old, new)
    assert (tmp_path / "x").read_text() == "text"
    assert sorted(os.listdir(tmp_path)) == before


async def test_a_replacement_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a" * LARGEST)
    with pytest.raises(ToolError, match="would become over"):
        await edit(tmp_path, "x", "a", "b" * LARGEST, replace_all=True)
    assert (tmp_path / "x").read_text() == "a" * LARGEST


async def test_a_name_as_long_as_names_can_be_is_no_obstacle(tmp_path: Path) -> None:
    name = "n" * 255
    await edit(tmp_path, name, "", "x")
    assert os.listdir(tmp_path) == [name]


async def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("one")
    plan = Edit(str(tmp_path)).plan({"path": "x", "old_string": "one", "new_string": "two"})
    file.write_text("one and more")
    with pytest.raises(ToolError, match="changed in the meantime"):
        await plan.run()
    assert file.read_text() == "one and more"
