"""Permission options are chosen by kind alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.rules.permission import Decision, choose, outcome
from protocol_schemas.acp import PermissionOption


def options(*pairs: tuple[Any, Any]) -> list[PermissionOption]:
    return [PermissionOption(ident, kind) for ident, kind in pairs]


@pytest.mark.parametrize(
    ("offered", "decision", "chosen"),
    [
        ([("yolo-1", "allow_always"), ("nope", "reject_once")], "allow", "yolo-1"),
        ([("a", "allow_always"), ("b", "allow_once")], "allow", "b"),
        ([("a", "reject_always"), ("b", "reject_once")], "deny", "b"),
        ([("a", "reject_always"), ("b", "allow_once")], "deny", "a"),
        ([("deny_always", "allow_once")], "allow", "deny_always"),
        ([(42, "allow_once")], "allow", 42),
        ([("with space", "allow_once"), ("änd", "reject_once")], "deny", "änd"),
        ([("allow", "reject_once")], "allow", None),
        ([("allow_once", "a kind of later")], "allow", None),
        ([("a", "allow_once")], "deny", None),
        ([("a", "allow_once"), ("b", "reject_once")], "cancel", None),
        ([], "allow", None),
        ([("a", None), ("b", 7)], "allow", None),
    ],
)
def test_the_narrowest_option_of_the_kind_is_taken(
    offered: list[tuple[Any, Any]], decision: Decision, chosen: Any
) -> None:
    assert choose(options(*offered), decision) == chosen


@given(st.permutations([("1", "allow_once"), ("2", "allow_always"), ("3", "reject_once")]))
def test_the_place_in_the_list_says_nothing(pairs: list[tuple[str, str]]) -> None:
    assert choose(options(*pairs), "allow") == "1"
    assert choose(options(*pairs), "deny") == "3"


def test_the_outcome_has_the_option_as_it_was_offered() -> None:
    assert outcome(42) == {"outcome": {"outcome": "selected", "optionId": 42}}
    assert outcome(None) == {"outcome": {"outcome": "cancelled"}}
