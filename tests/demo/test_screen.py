"""The demo's output where it is no terminal, and where it is one."""

import io

import pytest

from bridge.demo.screen import Screen


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_no_colours() -> None:
    out = io.StringIO()
    screen = Screen(out, {})
    screen.title("A step")
    screen.line("agent", "hello")
    assert "\x1b" not in out.getvalue()
    assert out.getvalue().endswith(" agent  hello\n")


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_gets_them_unless_it_asks_for_none(environment: dict[str, str]) -> None:
    coloured, plain = Terminal(), Terminal()
    Screen(coloured, {}).line("agent", "hello")
    Screen(plain, environment).line("agent", "hello")
    assert "\x1b[32m" in coloured.getvalue()
    assert "\x1b" not in plain.getvalue()


def test_a_long_line_is_cut_to_the_width() -> None:
    out = io.StringIO()
    Screen(out, {}).line("host", "x" * 500)
    assert out.getvalue().rstrip().endswith("x…")
    assert len(out.getvalue()) < 130


def test_what_streams_grows_on_one_line_until_something_else_happens() -> None:
    out = io.StringIO()
    screen = Screen(out, {})
    for word in ("one, ", "two, "):
        screen.stream("agent", word)
    screen.line("host", "stop")
    screen.stream("agent", "three\nfour")
    screen.pause()
    screen.stream("agent", "five")
    screen.title("Next")
    shown = [line[11:] for line in out.getvalue().splitlines()]
    assert shown[:4] == [" agent  one, two, ", "  host  stop", " agent  three four", " agent  five"]
    assert out.getvalue().endswith("\n\nNext\n")
