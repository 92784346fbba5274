"""Which answers allow. (How it is asked on the wire: test_tool_run.)"""

from typing import Any

import pytest

from bridge.loop_agent.permission import OPTIONS, _chosen


def test_the_options_have_the_kinds_of_acp_as_their_ids() -> None:
    kinds = ["allow_once", "allow_always", "reject_once", "reject_always"]
    assert [(option["optionId"], option["kind"]) for option in OPTIONS] == [(k, k) for k in kinds]


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        ({"outcome": {"outcome": "selected", "optionId": "allow_once"}}, "allow_once"),
        ({"outcome": {"outcome": "cancelled"}}, "cancelled"),
        ({"outcome": {"outcome": "selected"}}, "None"),
        ({"outcome": {"outcome": "allow_once", "optionId": "allow_once"}}, "allow_once"),
        ({"outcome": "cancelled"}, "None"),
        ({}, "None"),
        (None, "None"),
        ([], "None"),
    ],
)
def test_an_answer_is_read_for_what_it_says(answer: Any, chosen: str) -> None:
    assert _chosen(answer) == chosen
