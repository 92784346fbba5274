"""bridge.agent.profile: which profile a name means, and what is said of a bad one."""

import os
from pathlib import Path

import pytest

from bridge.agent import placeholders, profile
from bridge.errors import UsageError

BUILT_IN = {
    *("claude-code", "codex", "copilot", "gemini", "kimi-code", "openclaw", "opencode", "pi"),
    *("mini-swe-agent", "pool", "rlm", "terminus-2"),
}
OWN = """
name = "own"
title = "One's own"
[launch]
command = ["own"]
[wires.chat]
"""


def environment(folder: Path) -> dict[str, str]:
    """Of a user with one profile of the own and one in place of pi's."""
    agents = folder / "config/acp-mcp-bridge/agents"
    agents.mkdir(parents=True)
    (agents / "own.toml").write_text(OWN)
    (agents / "pi.toml").write_text(OWN.replace('"own"', '"pi"'))
    return {"XDG_CONFIG_HOME": str(folder / "config")}


def test_the_built_in_ones_are_there_and_right():
    assert set(profile.names({"HOME": "/nowhere"})) == BUILT_IN
    for name in BUILT_IN:
        found = profile.load(name, {"HOME": "/nowhere"})
        assert found.name == name
        assert found.title
        assert found.docs


def test_the_users_are_added_and_win(tmp_path: Path):
    mine = environment(tmp_path)
    assert set(profile.names(mine)) == BUILT_IN | {"own"}
    assert profile.load("own", mine).launch.command == ["own"]
    assert profile.load("pi", mine).launch.command == ["pi"]
    assert profile.load("codex", mine).launch.command == ["${bin}/codex-acp"]


def test_without_a_config_home_it_is_in_the_home():
    assert profile.directory({"HOME": "/h"}) == Path("/h/.config/acp-mcp-bridge/agents")


def test_a_path_is_read_whatever_the_name_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "any.toml").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    for path in (str(tmp_path / "any.toml"), "any.toml", "./any.toml"):
        assert profile.load(path, {}).name == "own"


def test_an_unknown_name_is_told_with_those_there_are(tmp_path: Path):
    with pytest.raises(
        UsageError, match=r"'nobody'; there are claude-code, .*acp-mcp-bridge/agents"
    ):
        profile.load("nobody", environment(tmp_path))


@pytest.mark.parametrize(
    "text, words",
    [
        ("name = x", "not TOML.*line 1"),
        (OWN + "[lunch]", "unknown field `lunch`"),
        (
            OWN.replace("command", "comand"),
            r"missing required field `command`.*\$\.launch|`comand`",
        ),
        (OWN.replace('["own"]', '"own"'), r"array.*\$\.launch\.command"),
        (OWN.replace("wires.chat", "wires.chatty"), r"chatty"),
        (OWN.replace('name = "own"', 'name = "Own!"'), r"\$\.name"),
        (OWN.replace('["own"]', '["${own}"]'), r"launch\.command\[0\]: there is no \$\{own\}"),
        (OWN.replace("[wires.chat]", "[install]\npackages = {}\n[wires.chat]"), r"\$\.install"),
        (
            OWN.replace("[wires.chat]", '[install]\npackages = {a = "1 || x"}\n[wires.chat]'),
            "packages",
        ),
    ],
)
def test_a_bad_one_is_told_with_file_and_key(tmp_path: Path, text: str, words: str):
    bad = tmp_path / "bad.toml"
    bad.write_text(text)
    with pytest.raises(UsageError, match=f"agent profile {bad}: .*({words})"):
        profile.load(str(bad), {})


def test_one_that_cannot_be_read_is_told(tmp_path: Path):
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(UsageError, match=f"agent profile {path}: "):
            profile.load(str(path), {})


def test_one_that_is_no_file_is_told(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(UsageError, match=r"pipe\.toml: no regular file"):
        profile.load(str(tmp_path / "pipe.toml"), {})
    for name in ("a\0b.toml", "\ud800.toml"):
        with pytest.raises(UsageError, match="no path: "):
            profile.load(str(tmp_path / name), {})


def test_a_users_profile_is_called_as_its_file(tmp_path: Path):
    mine = environment(tmp_path)
    (profile.directory(mine) / "other.toml").write_text(OWN)
    with pytest.raises(UsageError, match="name is 'own'; it must be the file's, 'other'"):
        profile.load("other", mine)


def test_the_page_about_profiles_names_each_and_shows_a_right_one():
    page = (Path(__file__).parents[2] / "docs/agents.md").read_text()
    assert {name for name in BUILT_IN if f"`{name}`" in page} == BUILT_IN
    example = page.partition("```toml\n")[2].partition("```")[0]
    shown = profile.parse(example, "docs/agents.md")
    assert shown.side_calls
    assert all(f"`${{{name}}}`" in page for name in placeholders.KNOWN)
