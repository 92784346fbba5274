"""The demo's output where it is no terminal, and where it is one."""

import io

import pytest

from bridge.demo.screen import Screen


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_no_colours() -> None:
    out = io.StringIO()
    screen = Screen(out)
    screen.title("A step")
    screen.line("agent", "hello")
    assert "\x1b" not in out.getvalue()
    assert out.getvalue().endswith(" agent  hello\n")


def test_a_terminal_gets_them_unless_it_asks_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = Terminal()
    Screen(coloured).line("agent", "hello")
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Terminal()
    Screen(plain).line("agent", "hello")
    assert "\x1b[32m" in coloured.getvalue()
    assert "\x1b" not in plain.getvalue()


def test_a_long_line_is_cut_to_the_width() -> None:
    out = io.StringIO()
    Screen(out).line("host", "x" * 500)
    assert out.getvalue().rstrip().endswith("x…")
    assert len(out.getvalue()) < 130
