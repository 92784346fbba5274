"""What the command line says of what it does not understand."""

import argparse

import pytest

from bridge.cli import frame
from bridge.cli.parser import Parser


def words(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    """The one line that a wrong command line gets."""
    with pytest.raises(SystemExit) as ended:
        frame.run(arguments)
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    [line] = shown.err.splitlines()
    return line


@pytest.mark.parametrize(
    ("line", "command", "problem"),
    [
        ("streem", "", "invalid choice: 'streem' (choose from 'stream'"),
        ("--recrod x", " stream", "unrecognized arguments: --recrod x; did you mean '--record'?"),
        ("stream --loup=trio", " stream", "--loup=trio; did you mean '--loop'?"),
        ("agents list --newst", " agents list", "--newst; did you mean '--newest'?"),
        ("agents run pi --wyre chat -- --wyre", " agents run", "--wyre chat; did you mean"),
        ("trace show x --colur", " trace show", "--colur; did you mean '--color'?"),
        ("stream --zzz", " stream", "unrecognized arguments: --zzz;"),
        ("stream --loop twisted", " stream", "invalid choice: 'twisted'"),
        ("trace diff one", " trace diff", "the following arguments are required: B;"),
        ("acp node --acp", " acp", "a command to be started stands behind --"),
        ("acp node --recrod", " acp", "did you mean '--record'?"),
        ("probe", " probe", "the following arguments are required: -- CMD"),
    ],
)
def test_the_line_names_the_command_the_problem_and_the_help(
    capsys: pytest.CaptureFixture[str], line: str, command: str, problem: str
) -> None:
    said = words(capsys, line.split())
    assert said.startswith(f"acp-mcp-bridge{command}: ")
    assert problem in said
    assert said.endswith(f" see: acp-mcp-bridge{command} --help")


def test_what_is_understood_is_parsed_as_ever() -> None:
    parser = Parser()
    parser.add_argument("--times", type=int)
    inner = parser.add_subparsers(dest="what").add_parser("this")
    assert type(inner) is Parser
    inner.add_argument("more", nargs="*", default=[])
    assert parser.parse_args(["--times", "2", "this", "a", "b"]) == argparse.Namespace(
        times=2, what="this", more=["a", "b"]
    )


def test_a_list_of_words_goes_on_behind_an_option() -> None:
    parser = Parser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("file")
    parser.add_argument("filter", nargs="*", default=[])
    for line in (
        "f a b --full",
        "f --full a b",
        "f a --full b",
        "--full f a b",
        "f --full -- a b",
    ):
        found = parser.parse_args(line.split())
        assert (found.full, found.file, found.filter) == (True, "f", ["a", "b"]), line
    assert parser.parse_args(["f"]).filter == []
    assert parser.parse_args(["f", "--full", "--", "-x"]).filter == ["-x"]
