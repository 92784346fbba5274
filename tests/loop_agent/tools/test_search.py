"""The search tool, with its real worker process."""

from pathlib import Path

import pytest

from bridge.io.family import Family
from bridge.loop_agent.toolbox import Result, ToolError
from bridge.loop_agent.tools.search import Search

pytestmark = pytest.mark.anyio


async def search(cwd: Path, timeout: float = 20, **arguments: object) -> Result:
    return await Search(str(cwd), Family(), timeout).plan(arguments).run()


async def test_matches_are_given_with_their_places(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    (tmp_path / "b.txt").write_text("two too\n")
    result = await search(tmp_path, pattern=r"tw[o]")
    assert result.content == "a.py:2:two\nb.txt:1:two too"
    assert result.raw["locations"][0] == {"path": str(tmp_path / "a.py"), "line": 2}
    narrowed = await search(tmp_path, pattern="two", glob="*.py")
    assert narrowed.content == "a.py:2:two"


async def test_no_match_is_said(tmp_path: Path) -> None:
    result = await search(tmp_path, pattern="x")
    assert (result.content, result.failed) == ("No matches.", False)


async def test_more_than_can_be_shown_is_said(tmp_path: Path) -> None:
    (tmp_path / "many").write_text("x\n" * 1000)
    result = await search(tmp_path, pattern="x")
    assert str(result.content).count("many:") == 200
    assert "narrow the search" in str(result.content)


async def test_an_expression_without_end_is_ended(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a" * 200 + "b\n")
    with pytest.raises(ToolError, match="took over"):
        await search(tmp_path, 0.5, pattern="(a+)+$")


async def test_what_cannot_be_searched_is_said(tmp_path: Path) -> None:
    tool = Search(str(tmp_path), Family())
    for arguments, words in [
        ({"pattern": "("}, "no regular expression"),
        ({"pattern": "x", "path": "nowhere"}, "does not exist"),
        ({}, "'pattern'"),
    ]:
        with pytest.raises(ToolError, match=words):
            tool.plan(arguments)
