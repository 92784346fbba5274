"""Limits: what is reached, what a capped answer is, what a refused call is told."""

import pytest

from bridge.rules.limits import Spent, lowered, ran_into_cap, reached, words
from protocol_schemas.model import ModelLimits, Usage


@pytest.mark.parametrize(
    "limits, below, at",
    [
        (ModelLimits(max_turns=2), Spent(turns=1), Spent(turns=2)),
        (ModelLimits(max_turn_tokens=2), Spent(), Spent(capped=True)),
        (ModelLimits(max_total_tokens=10), Spent(tokens=9), Spent(tokens=10)),
        (ModelLimits(max_seconds=1.5), Spent(seconds=1.4), Spent(seconds=1.5)),
    ],
)
def test_a_limit_is_reached_and_named(limits: ModelLimits, below: Spent, at: Spent) -> None:
    name = reached(limits, at)
    assert name in ModelLimits.__struct_fields__
    assert getattr(limits, name) is not None
    assert reached(limits, below) is None
    assert name in words(limits, name)
    assert f"({getattr(limits, name):g})" in words(limits, name)


def test_without_limits_nothing_is_ever_reached() -> None:
    assert reached(ModelLimits(), Spent(10**9, 10**12, True, 1e9)) is None


def test_an_answer_runs_into_its_cap_by_tokens_or_by_its_own_words() -> None:
    limits = ModelLimits(max_turn_tokens=5)
    assert ran_into_cap(limits, Usage(output=5), False)
    assert ran_into_cap(limits, None, True)
    assert not ran_into_cap(limits, Usage(output=4), False)
    assert not ran_into_cap(limits, Usage(), False)
    assert not ran_into_cap(ModelLimits(), Usage(output=9), True)


@pytest.mark.parametrize(
    "asked, put",
    [(None, 5), (6, 5), (5, None), (0, None), (True, 5), ("9", 5), (4.5, None), (5.5, 5), (-1, 5)],
)
def test_a_request_s_own_cap_is_lowered_never_raised(asked: object, put: int | None) -> None:
    assert lowered(5, asked) == put
