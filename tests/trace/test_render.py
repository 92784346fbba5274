"""Lines for a terminal, and how they degrade."""

import io
import re
import unicodedata
from typing import Any

import pytest

from bridge.trace.render import Screen, Style, seconds, style_for
from bridge.trace.runs import rows
from tests.trace.traces import Script


def lines(script: Script, **style: Any) -> list[str]:
    screen = Screen(Style(**style))
    return [line for row in rows(script.entries()) for line in screen.lines(row)]


def test_a_line_has_the_time_the_way_the_id_the_latency_and_the_words() -> None:
    request, response = lines(Script().prompt(3, "hello").stopped(3))
    assert request.split() == ["2", "0.010", "acp", "→", "#3", "session/prompt", '"hello"']
    assert response.split() == [
        "3", "0.020", "10", "ms", "acp", "←", "#3", "session/prompt", "end_turn",
    ]  # fmt: skip


def test_the_same_column_begins_at_the_same_place_in_every_line() -> None:
    found = lines(
        Script().opened().say("é").add("stderr", "in", session="long-session-name", text="x")
    )
    assert len({max(line.find(arrow) for arrow in "→←·") for line in found}) == 1


def test_a_run_shows_its_count_and_text() -> None:
    [line] = lines(Script().say("one ").say("two"))
    assert "×2" in line
    assert '"one two"' in line


def test_colours_only_where_they_are_wanted() -> None:
    assert "\x1b" not in lines(Script().prompt(1))[0]
    [line] = lines(Script().prompt(1), colour=True)
    assert line.count("\x1b[0m") == line.count("\x1b[") - line.count("\x1b[0m")


@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("text", ["x" * 500, "漢" * 500, "e\u0301" * 500])
def test_a_line_is_no_wider_than_the_terminal(text: str, colour: bool) -> None:
    [line] = lines(Script().prompt(1, text), width=100, colour=colour)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
    cells = sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in plain
    )
    assert 90 < cells <= 100
    assert line.rfind("\x1b[0m") == line.rfind("\x1b")


def test_ascii_is_enough() -> None:
    found = lines(Script().say("é\n").say("漢"), unicode=False)
    assert all(line.isascii() for line in found)
    assert "x2" in found[0]


def test_a_lone_surrogate_is_survived() -> None:
    [line] = lines(Script().prompt(1, "\ud83d"))
    line.encode()


def test_in_full_a_message_is_laid_out_below_its_line() -> None:
    found = lines(Script().call(1, "m", {"a": [1]}), full=True)
    assert [line.strip() for line in found[1:]] == [
        "{", '"jsonrpc": "2.0",', '"id": 1,', '"method": "m",', '"params": {', '"a": [', "1", "]",
        "}", "}",
    ]  # fmt: skip


def test_in_full_a_run_is_its_text() -> None:
    assert lines(Script().say("one\n").say("two"), full=True)[1:] == ["        one", "        two"]


class Terminal(io.StringIO):
    encoding = "utf-8"  # pyright: ignore[reportAssignmentType]

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "colour", "wanted"),
    [
        ({}, "auto", True),
        ({"NO_COLOR": "1"}, "auto", False),
        ({"TERM": "dumb"}, "auto", False),
        ({"NO_COLOR": "1"}, "always", True),
        ({}, "never", False),
    ],
)
def test_the_style_follows_the_terminal(
    environment: dict[str, str], colour: str, wanted: bool
) -> None:
    style = style_for(Terminal(), environment, columns=120, colour=colour, full=False)
    assert (style.colour, style.width, style.unicode) == (wanted, 120, True)


def test_in_a_pipe_there_is_neither_colour_nor_a_width() -> None:
    style = style_for(io.StringIO(), {}, columns=120, colour="auto", full=False)
    assert (style.colour, style.width, style.unicode) == (False, 0, False)


@pytest.mark.parametrize(
    ("value", "text"), [(0.00034, "340 µs"), (0.027, "27 ms"), (1.206, "1.21 s")]
)
def test_durations_are_for_people(value: float, text: str) -> None:
    assert seconds(value) == text
