"""When a turn is over, whatever order its signs come in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agent.v2.foreground import Foreground, Step

EVENTS = st.sampled_from(
    ["sent", "echoed", "accepted", "refused", "cancelled", "works", "idle", "stop"]
)


def steps(work: Foreground, *events: str) -> list[Step]:
    """What each event means, those that mean nothing left out."""
    found: list[Step] = []
    for event in events:
        match event:
            case "stop":
                step = work.idles(reason=True)
            case "idle":
                step = work.idles(reason=False)
            case "refused":
                step = work.over() if work.running else None
            case _:
                step = getattr(work, event)()
        if step is not None:
            found.append(step)
    return found


def opened() -> Foreground:
    work = Foreground()
    assert work.open() is None
    return work


@pytest.mark.parametrize(
    "events",
    [
        ["sent", "echoed", "accepted", "works", "stop"],
        ["sent", "accepted", "echoed", "works", "stop"],
        ["sent", "works", "echoed", "accepted", "stop"],
        ["sent", "echoed", "works", "stop", "accepted"],
        ["sent", "accepted", "works", "stop", "echoed"],
        ["sent", "echoed", "accepted", "works", "works", "idle"],
        ["sent", "echoed", "accepted", "idle", "works", "stop", "idle", "stop"],
        ["sent", "works", "echoed", "idle"],
        ["sent", "cancelled", "idle"],
        ["sent", "echoed", "cancelled", "stop"],
        ["sent", "works", "refused", "stop"],
        ["sent", "refused"],
    ],
)
def test_a_prompt_s_turn_has_one_end(events: list[str]) -> None:
    work = opened()
    assert steps(work, *events) == ["end"]
    assert not work.running


@pytest.mark.parametrize(
    "events",
    [["works", "stop"], ["works", "idle"], ["works", "works", "cancelled", "stop", "stop"]],
)
def test_work_without_a_prompt_is_a_turn_of_its_own(events: list[str]) -> None:
    assert steps(opened(), *events) == ["begin", "end"]


@pytest.mark.parametrize(
    ("events", "found"),
    [
        (["sent", "works", "stop"], ["doubt"]),
        (["sent", "accepted", "stop"], ["doubt"]),
        (["sent", "works", "stop", "accepted"], ["doubt"]),
        (["sent", "works", "stop", "cancelled"], ["doubt", "end"]),
        (["sent", "works", "stop", "refused"], ["doubt", "end"]),
        (["sent", "works", "stop", "echoed", "works", "stop"], ["doubt", "anew", "end"]),
        (["sent", "works", "stop", "accepted", "works", "stop"], ["doubt", "anew", "end"]),
        (["sent", "works", "stop", "works", "echoed", "stop"], ["doubt", "anew", "end"]),
        (["sent", "stop", "stop"], ["doubt", "doubt"]),
    ],
)
def test_an_end_before_the_prompt_was_taken_in_is_doubtful(
    events: list[str], found: list[Step]
) -> None:
    assert steps(opened(), *events) == found


@pytest.mark.parametrize("events", [["idle"], ["stop"], ["sent", "idle"], ["accepted", "echoed"]])
def test_what_is_no_news_means_nothing(events: list[str]) -> None:
    assert steps(opened(), *events) == []


def test_a_session_that_is_opened_at_work_begins_a_turn() -> None:
    work = Foreground()
    assert steps(work, "works", "stop", "works") == []
    assert work.open() == "begin"
    assert steps(work, "works", "stop") == ["end"]


@given(st.lists(EVENTS, max_size=30))
def test_every_turn_begins_and_ends_once(events: list[str]) -> None:
    work, begun, ended = opened(), 0, 0
    for event in events:
        if event == "sent" and work.running:
            continue
        before = work.running
        found = steps(work, event)
        begun += event == "sent" or "begin" in found
        ended += "end" in found
        if found == ["begin"]:
            assert not before
        if set(found) & {"end", "doubt", "anew"}:
            assert before
        assert begun - ended == work.running
