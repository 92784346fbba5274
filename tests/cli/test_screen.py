"""What a chat shows where."""

import io

from bridge.cli.screen import Screen


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_words_go_to_stdout_and_notes_to_stderr() -> None:
    out, err = io.StringIO(), io.StringIO()
    screen = Screen(out, err, {})
    screen.say("Hel")
    screen.say("lo")
    screen.think("hm")
    screen.note("* ls", "* pwd")
    screen.say("Done.\n")
    screen.note("end")
    screen.pause()
    assert out.getvalue() == "Hello\nDone.\n"
    assert err.getvalue() == "* ls\n* pwd\nend\n"


def test_a_terminal_gets_thoughts_and_each_speaker_a_line() -> None:
    terminal = Terminal()
    screen = Screen(terminal, terminal, {"NO_COLOR": "1"})
    screen.think("let me")
    screen.think(" see")
    screen.say("Hello")
    screen.ask("> ")
    screen.answered()
    screen.say("Bye")
    screen.ask("may it? ")
    screen.note("no")
    assert terminal.getvalue() == "let me see\nHello\n> Bye\nmay it? \nno\n"


def test_notes_are_dim_where_that_can_be_seen() -> None:
    for environment, dim in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        terminal = Terminal()
        Screen(terminal, terminal, environment).note("x")
        assert ("\x1b[2m" in terminal.getvalue()) is dim


def test_nothing_that_is_said_steers_the_terminal() -> None:
    terminal = Terminal()
    screen = Screen(terminal, terminal, {"NO_COLOR": "1"})
    screen.say("a\x1b]0;title\x07b\tc\ud83d")
    screen.note("evil \x1b[2J\nname")
    assert "\x1b" not in terminal.getvalue()
    assert terminal.getvalue().startswith("a]0;titleb\tc\nevil ")
    assert terminal.getvalue().count("\n") == 2
