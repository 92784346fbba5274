"""Two runs compared: what is chance is no difference, what is not is found."""

from pathlib import Path
from typing import Any

import pytest

from bridge.trace.diff import Comparison, compare, figures_of, report
from tests.trace.traces import Script


def run(session: str = "s", text: tuple[str, ...] = ("one ", "two"), **agent: Any) -> Script:
    script = Script().opened(session=session, agentCapabilities=agent)
    script.prompt(2, session=session)
    for piece in text:
        script.say(piece, session=session, messageId=f"m-{session}")
    call = {"toolCallId": f"t-{session}", "title": "T", "status": "completed"}
    return script.update("tool_call", session, **call).stopped(2)


def found(one: Script, other: Script) -> Comparison:
    return compare(one.entries(), other.entries())


def test_a_run_is_the_same_as_itself() -> None:
    same = found(run(), run())
    assert not same.differs
    assert same.same == 8


def test_ids_that_a_run_makes_up_and_how_its_chunks_are_cut_are_no_difference() -> None:
    assert not found(run("first"), run("second", ("one", " t", "wo"))).differs


def test_another_word_is_a_difference_with_its_lines() -> None:
    changed = found(run(), run(text=("one ", "three")))
    assert [(item.sign, item.line) for item in changed.messages] == [("-", 7), ("+", 7)]
    assert "one two" in changed.messages[0].words
    assert "one three" in changed.messages[1].words


def test_a_message_more_is_a_difference_and_the_rest_is_the_same() -> None:
    changed = found(run(), run().from_agent("noise"))
    assert [item.sign for item in changed.messages] == ["+"]
    assert changed.same == 8


def test_capabilities_are_compared_by_name() -> None:
    changed = found(run(loadSession=True), run(loadSession=False, mcpCapabilities={"http": True}))
    assert changed.offers == [
        "agent agentCapabilities.loadSession: true -> false",
        "agent agentCapabilities.mcpCapabilities.http: absent -> true",
    ]


def test_ports_process_numbers_and_times_are_no_difference() -> None:
    def with_events(number: int) -> Script:
        script = Script().add("process", kind="start", data={"argv": ["x"], "pid": number})
        data = {"upstream": f"http://127.0.0.1:{number}", "at": number / 7, "seconds": number}
        return script.add("model", n=1, kind="end", data=data)

    assert not found(with_events(1000), with_events(2000)).differs


@pytest.mark.parametrize("times", [True, False])
def test_the_report_names_both_and_counts(tmp_path: Path, times: bool) -> None:
    one, other = run().entries(), run(text=("x",)).entries()
    lines = list(
        report(("A", "B"), compare(one, other), (figures_of(one), figures_of(other)), times=times)
    )
    assert lines[:2] == ["- A", "+ B"]
    assert (
        "6 messages are the same, 4 are not" in lines
        or "7 messages are the same, 2 are not" in lines
    )
    assert any(line.startswith("turn") for line in lines)
    assert any("session/new" in line for line in lines) is times
