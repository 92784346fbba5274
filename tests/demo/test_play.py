"""The demo's steps fail where what they show did not happen."""

import pytest

from bridge.demo.play import DemoFailed, check


def test_a_step_that_did_not_happen_fails_by_name() -> None:
    with pytest.raises(DemoFailed, match="the reply was 'x'"):
        check(False, "the reply was 'x'")


def test_a_step_that_happened_says_nothing() -> None:
    assert check({"usage": 1}, "unused") is None
