"""Which of a session's exchanges belong to its turn, which failed, and how the last one ended."""

from typing import Any

import pytest

from bridge.model.generations import Generations, failed
from protocol_schemas.model import ModelEvent


def event(exchange: int, *, status: int | None = 200, **more: Any) -> ModelEvent:
    fields: dict[str, Any] = {"outcome": "complete", "purpose": "turn", **more}
    purpose, outcome = fields.pop("purpose"), fields.pop("outcome")
    return ModelEvent(
        "model", "s", exchange, "POST", "/v1/messages", "anthropic", purpose, "http://u", 0.0,
        outcome, status=status, **fields,
    )  # fmt: skip


class Session:
    """A session's exchanges, numbered as they begin."""

    def __init__(self) -> None:
        self.generations = Generations()
        self._number = 0

    def begin(self, status: int | None = None, **fields: Any) -> int:
        """One that is under way: its answer's status has come, or not."""
        self._number += 1
        self.generations.began(event(self._number, status=status, outcome="gone", **fields))
        return self._number

    def call(self, **fields: Any) -> int:
        number = self.begin()
        self.generations.ended(event(number, **fields))
        return number

    def turn(self) -> None:
        self.generations.turn_began()

    def end(self) -> tuple[list[tuple[int, int | None, bool]], str | None]:
        turn = self.generations.turn_ended()
        return [(e.exchange, e.status, e.recovered) for e in turn.errors], turn.last


def test_a_turn_without_calls_says_nothing() -> None:
    session = Session()
    session.turn()
    assert session.end() == ([], None)


def test_an_error_that_the_agent_gave_up_on() -> None:
    session = Session()
    session.turn()
    session.call()
    session.call(status=400, error="no")
    assert session.end() == ([(2, 400, False)], "failed")


def test_errors_before_one_that_succeeded_are_recovered() -> None:
    session = Session()
    session.turn()
    for status in (500, 503):
        session.call(status=status)
    session.call()
    assert session.end() == ([(1, 500, True), (2, 503, True)], "answered")


def test_only_what_begins_in_the_turn_belongs_to_it() -> None:
    session = Session()
    session.call(status=500)
    before = session.begin()
    session.turn()
    session.generations.ended(event(before, status=500))
    session.call()
    after = session.begin()
    assert session.end() == ([], "answered")
    session.generations.ended(event(after, status=500))
    session.call(status=500)
    session.turn()
    assert session.end() == ([], None)


def test_a_parallel_call_is_no_second_try() -> None:
    session = Session()
    session.turn()
    one, other = session.begin(), session.begin()
    session.generations.ended(event(one, status=529))
    session.generations.ended(event(other))
    assert session.end() == ([(one, 529, False)], "answered")


def test_side_calls_fail_by_themselves() -> None:
    session = Session()
    session.turn()
    session.call(purpose="side", side="title", status=404)
    session.call()
    session.call(purpose="side", side="title", status=404)
    turn = session.generations.turn_ended()
    assert [(e.purpose, e.side, e.recovered) for e in turn.errors] == [("side", "title", False)] * 2
    assert turn.last == "answered"


@pytest.mark.parametrize("purpose", ["count", "models", "other"])
def test_what_generates_nothing_does_not_count(purpose: str) -> None:
    session = Session()
    session.turn()
    session.call(purpose=purpose, status=404)
    assert session.end() == ([], None)


def test_what_the_agent_broke_off_is_neither() -> None:
    session = Session()
    session.turn()
    session.call(outcome="gone")
    assert session.end() == ([], None)
    session.turn()
    session.call(outcome="gone", finish_reason="stop")
    assert session.end() == ([], "answered")


@pytest.mark.parametrize(
    "status, expected",
    [(None, ([], None)), (200, ([], "answered")), (429, ([(1, 429, False)], "failed"))],
)
def test_what_is_under_way_when_the_turn_ends_counts_by_its_status(
    status: int | None, expected: Any
) -> None:
    session = Session()
    session.turn()
    number = session.begin(status)
    assert session.end() == expected
    session.generations.ended(event(number, status=500))
    session.turn()
    assert session.end() == ([], None)


def test_a_try_that_is_being_answered_recovers_what_failed_before_it() -> None:
    session = Session()
    session.turn()
    session.call(status=500)
    session.begin(200)
    session.begin(200, purpose="count")
    assert session.end() == ([(1, 500, True)], "answered")


def test_what_a_limit_refused_leaves_the_verdict_to_the_limit() -> None:
    session = Session()
    session.turn()
    session.call()
    session.call(outcome="refused", status=400, limit="max_turns", error="the limit")
    assert session.end() == ([], None)


@pytest.mark.parametrize(
    "fields, expected",
    [
        ({}, False),
        ({"status": 302}, False),
        ({"status": 400}, True),
        ({"outcome": "cut"}, True),
        ({"outcome": "failed", "status": 502}, True),
        ({"outcome": "refused", "status": 413}, True),
        ({"error": "in the stream"}, True),
        ({"outcome": "gone"}, False),
        ({"outcome": "gone", "status": 429}, True),
        ({"outcome": "gone", "status": None}, False),
    ],
)
def test_what_counts_as_a_failure(fields: dict[str, Any], expected: bool) -> None:
    assert failed(event(1, **fields)) is expected


def test_an_error_always_has_words() -> None:
    session = Session()
    session.turn()
    session.call(status=500)
    session.call(status=500, error="oops")
    assert [e.error for e in session.generations.turn_ended().errors] == ["status 500", "oops"]
