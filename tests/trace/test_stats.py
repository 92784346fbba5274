"""Figures of a trace."""

import pytest

from bridge.trace.stats import Statistics, TraceStats
from bridge.trace.tables import bytes_of, statistics, table
from tests.trace.traces import Script


def stats(script: Script) -> TraceStats:
    found = Statistics()
    for entry in script.entries():
        found.add(entry)
    return found.result()


def test_calls_are_counted_by_channel_direction_and_method() -> None:
    script = Script().call(1, "m").answer(1).call(2, "m").say("x").answer(2, error={"code": 1})
    script.call(3, "m").ask(1, "m", {})
    ours, theirs = stats(script).methods
    assert (ours.channel, ours.dir, ours.method, ours.count) == ("acp", "out", "m", 3)
    assert (ours.failed, ours.unanswered) == (1, 1)
    assert ours.p50 == pytest.approx(0.01)
    assert ours.p99 == ours.max == pytest.approx(0.02)
    assert (theirs.dir, theirs.count, theirs.unanswered, theirs.p50) == ("in", 1, 1, None)


def test_the_time_of_a_turn_is_the_model_s_the_tools_or_the_agent_s() -> None:
    script = Script().prompt(1)  # at 10 ms
    script.add("model", "in", n=1, session="", kind="request", data={"method": "POST"})  # 20
    script.say("a")  # 30
    script.add("model", n=1, session="", kind="end", data={"outcome": "complete"})  # 40
    script.update("tool_call", toolCallId="t", status="pending")  # 50
    script.update("tool_call", toolCallId="u", status="pending")  # 60
    script.update("tool_call_update", toolCallId="t", status="completed")  # 70
    script.update("tool_call_update", toolCallId="u", status="failed")  # 80
    script.say("bc").stopped(1).say("late")  # 90, 100
    [turn] = stats(script).turns
    assert turn.seconds == pytest.approx(0.09)
    assert turn.model == pytest.approx(0.02)
    assert turn.tools == pytest.approx(0.03)
    assert turn.agent == pytest.approx(0.04)
    assert turn.first_update == pytest.approx(0.02)
    assert (turn.chunks, turn.characters, turn.tool_calls) == (2, 3, 2)
    assert turn.stop_reason == "end_turn"


def test_turns_of_two_sessions_at_once_are_apart() -> None:
    script = Script().prompt(1, session="a").prompt(2, session="b")
    script.say("x", session="a").say("yy", session="b").stopped(2).stopped(1)
    first, second = stats(script).turns
    assert (first.acp_session, first.characters) == ("a", 1)
    assert (second.acp_session, second.characters) == ("b", 2)


def test_a_turn_without_an_end_is_open() -> None:
    [turn] = stats(Script().prompt(1).say("x")).turns
    assert turn.seconds is None
    assert turn.stop_reason is None


def test_tokens_retries_noise_and_updates_are_added_up() -> None:
    script = Script().from_agent("noise").say("x").say("y")
    for n in (1, 2):
        usage = {"input": 10, "output": n}
        script.add("model", n=n, kind="end", data={"outcome": "complete", "usage": usage})
        script.add("mcp", kind="attempt", data={"attempt": n, "outcome": "answer"})
    found = stats(script)
    assert found.tokens == {"input": 20, "output": 3}
    assert (found.retries, found.noise) == (1, 1)
    assert found.updates == {"agent_message_chunk": 2}


def test_an_empty_trace_has_figures_too() -> None:
    assert statistics(stats(Script())) == ["0 events in 0 µs; no bytes"]


def test_the_tables_hold_every_turn_and_method() -> None:
    script = Script().opened().prompt(2).say("x").stopped(2)
    text = "\n".join(statistics(stats(script)))
    for word in ("session/new", "session/prompt", "end_turn", "agent_message_chunk"):
        assert word in text


def test_columns_are_as_wide_as_they_must_be() -> None:
    assert table(("name", "n"), [("a", "10"), ("long", "5")], "n") == [
        "name   n",
        "a     10",
        "long   5",
    ]


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 30, "3072.0 MiB")]
)
def test_sizes_are_for_people(size: int, text: str) -> None:
    assert bytes_of(size) == text
