"""An account's counts."""

from bridge.model.ledger import Account
from protocol_schemas.model import ModelLimits, Usage


def test_turns_count_when_let_through_and_are_given_back_when_they_fail() -> None:
    account, limits = Account(), ModelLimits(max_turns=2)
    assert account.admit(limits, turn=True) is None
    assert account.admit(limits, turn=True) is None
    assert account.admit(limits, turn=True) == "max_turns"
    assert account.stopped_by == "max_turns"
    account.give_back()
    assert account.admit(limits, turn=True) is None


def test_side_calls_are_no_turns_but_stop_with_them() -> None:
    account, limits = Account(), ModelLimits(max_turns=1)
    assert account.admit(limits, turn=False) is None
    assert account.admit(limits, turn=True) is None
    assert account.admit(limits, turn=False) == "max_turns"


def test_tokens_of_all_calls_add_up() -> None:
    account, limits = Account(), ModelLimits(max_total_tokens=10)
    account.add(limits, Usage(input=4, output=2), cut_short=False)
    account.add(limits, None, cut_short=False)
    assert account.admit(limits, turn=True) is None
    account.add(limits, Usage(input=3, output=1), cut_short=False)
    assert account.admit(limits, turn=True) == "max_total_tokens"


def test_what_was_counted_early_is_not_counted_twice() -> None:
    account, limits = Account(), ModelLimits(max_total_tokens=10)
    counted = account.add(limits, Usage(input=4), cut_short=False)
    assert counted == 4
    assert account.add(limits, Usage(input=4, output=5), cut_short=False, counted=counted) == 9
    assert account.admit(limits, turn=True) is None
    account.add(limits, Usage(output=1), cut_short=False)
    assert account.admit(limits, turn=True) == "max_total_tokens"


def test_a_capped_answer_forbids_the_next_call() -> None:
    account, limits = Account(), ModelLimits(max_turn_tokens=5)
    account.add(limits, Usage(output=4), cut_short=False)
    assert account.admit(limits, turn=True) is None
    account.add(limits, None, cut_short=True)
    assert account.admit(limits, turn=True) == "max_turn_tokens"


def test_time_runs_from_the_first_call() -> None:
    account, limits = Account(), ModelLimits(max_seconds=1e-9)
    assert account.admit(limits, turn=True) is None
    assert account.admit(limits, turn=True) == "max_seconds"
