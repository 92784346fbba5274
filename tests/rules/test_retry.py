"""The failure table of MCP_PROXY.md, cell by cell."""

import math
from email.utils import formatdate
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.rules import retry
from bridge.rules.retry import Kind, Verdict
from protocol_schemas.mcp import Backoff, Delivery, Hints

SAY_NOTHING = Hints()
READ_ONLY = Hints(read_only_hint=True)
IDEMPOTENT = Hints(idempotent_hint=True)
DESTRUCTIVE = Hints(destructive_hint=True)
NOT_IDEMPOTENT = Hints(idempotent_hint=False)

kinds = st.sampled_from(get_args(Kind))
deliveries = st.sampled_from(get_args(Delivery))
maybe = st.sampled_from([None, True, False])
hints = st.builds(Hints, read_only_hint=maybe, destructive_hint=maybe, idempotent_hint=maybe)


@pytest.mark.parametrize("kind", ["connect", "opening", "refused", "session", "headers"])
@pytest.mark.parametrize("delivery", get_args(Delivery))
@pytest.mark.parametrize("said", [SAY_NOTHING, READ_ONLY, DESTRUCTIVE, NOT_IDEMPOTENT])
def test_what_was_not_executed_is_retried_in_every_mode(
    kind: Kind, delivery: Delivery, said: Hints
) -> None:
    assert retry.EXECUTED[kind] == "no"
    assert retry.verdict(kind, delivery, said) == "retry"


@pytest.mark.parametrize(
    "delivery, said, expected",
    [
        ("at-least-once", SAY_NOTHING, "retry"),
        ("at-least-once", READ_ONLY, "retry"),
        ("at-least-once", IDEMPOTENT, "retry"),
        ("at-least-once", DESTRUCTIVE, "unknown"),
        ("at-least-once", NOT_IDEMPOTENT, "unknown"),
        ("at-least-once", Hints(read_only_hint=True, idempotent_hint=False), "retry"),
        ("at-least-once", Hints(destructive_hint=True, idempotent_hint=True), "retry"),
        ("safe", SAY_NOTHING, "unknown"),
        ("safe", READ_ONLY, "retry"),
        ("safe", IDEMPOTENT, "retry"),
        ("safe", DESTRUCTIVE, "unknown"),
        ("safe", NOT_IDEMPOTENT, "unknown"),
        ("safe", Hints(read_only_hint=True, idempotent_hint=False), "retry"),
        ("never", SAY_NOTHING, "unknown"),
        ("never", READ_ONLY, "unknown"),
        ("never", IDEMPOTENT, "unknown"),
        ("never", DESTRUCTIVE, "unknown"),
    ],
)
def test_a_lost_answer_is_replayed_only_where_mode_and_tool_allow(
    delivery: Delivery, said: Hints, expected: Verdict
) -> None:
    assert retry.EXECUTED["lost"] == "maybe"
    assert retry.verdict("lost", delivery, said) == expected


@pytest.mark.parametrize("delivery", get_args(Delivery))
@pytest.mark.parametrize("said", [SAY_NOTHING, READ_ONLY, IDEMPOTENT, DESTRUCTIVE])
def test_a_timeout_and_a_rejection_are_never_replayed(delivery: Delivery, said: Hints) -> None:
    assert retry.verdict("timeout", delivery, said) == "timeout"
    assert retry.verdict("rejected", delivery, said) == "failed"


@given(kinds, deliveries, hints)
def test_never_and_safe_are_no_laxer_than_the_mode_above_them(
    kind: Kind, delivery: Delivery, said: Hints
) -> None:
    order = ["at-least-once", "safe", "never"]
    verdicts = [retry.verdict(kind, mode, said) for mode in order]
    given_up = [given != "retry" for given in verdicts]
    assert given_up == sorted(given_up)
    assert order.index(retry.effective(delivery, said)) >= order.index(delivery)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("written", [True, False])
def test_being_turned_away_means_not_executed(status: int, written: bool) -> None:
    assert retry.from_status(status, written=written, in_session=True) == "refused"


@pytest.mark.parametrize("status", [200, 202, 408, 425, 500, 501, 502, 504, 599])
def test_a_server_in_trouble_may_have_executed_what_it_was_given(status: int) -> None:
    assert retry.from_status(status, written=True, in_session=True) == "lost"
    assert retry.from_status(status, written=False, in_session=False) == "opening"


@pytest.mark.parametrize("status", [404, 400])
def test_an_unknown_session_is_told_from_an_unknown_address(status: int) -> None:
    assert retry.from_status(status, written=True, in_session=True) == "session"
    assert retry.from_status(status, written=True, in_session=False) == "rejected"
    assert retry.from_status(status, written=False, in_session=False) == "rejected"


@pytest.mark.parametrize("status", [301, 307, 401, 402, 403, 405, 406, 410, 413, 422])
@pytest.mark.parametrize("written", [True, False])
def test_other_refusals_are_final(status: int, written: bool) -> None:
    assert retry.from_status(status, written=written, in_session=True) == "rejected"


def test_the_waits_double_from_half_a_second_to_thirty() -> None:
    waits = [retry.wait_before_next(n, Backoff(), None, lambda: 0.0) for n in range(1, 9)]
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert retry.wait_before_next(1, Backoff(), None, lambda: 0.5) == 1.0
    assert retry.wait_before_next(1, Backoff(initial=0.1), None, lambda: 0.5) == pytest.approx(0.2)
    assert retry.wait_before_next(3, Backoff(initial=0, max=30), None, lambda: 0.9) == 0


def test_what_the_server_asks_for_is_a_floor_up_to_a_minute() -> None:
    assert retry.wait_before_next(1, Backoff(), 7.0, lambda: 0.0) == 7.0
    assert retry.wait_before_next(1, Backoff(), 0.0, lambda: 0.0) == 0.5
    assert retry.wait_before_next(7, Backoff(), 3.0, lambda: 0.0) == 30.0
    assert retry.wait_before_next(1, Backoff(), 3600.0, lambda: 0.0) == 60.0


@given(
    st.integers(1, 10_000),
    st.floats(0, 100),
    st.floats(0, 1000),
    st.none() | st.floats(0, 1e9),
    st.floats(0, 1, exclude_max=True),
)
def test_a_wait_is_finite_and_within_its_bounds(
    attempt: int, initial: float, most: float, asked: float | None, chance: float
) -> None:
    wait = retry.wait_before_next(attempt, Backoff(initial, most), asked, lambda: chance)
    assert math.isfinite(wait)
    assert 0 <= wait <= max(most, 60.0)


@pytest.mark.parametrize(
    "value, seconds",
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("1.5", 1.5),
        (formatdate(1_000_030, usegmt=True), 30.0),
        (formatdate(999_000, usegmt=True), 0.0),
        ("Mon, 32 Foo 2026 00:00:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry.retry_after_seconds(value, 1_000_000.0) == seconds


@given(st.text())
def test_no_retry_after_raises(value: str) -> None:
    seconds = retry.retry_after_seconds(value, 0.0)
    assert seconds is None or (math.isfinite(seconds) and seconds >= 0)
