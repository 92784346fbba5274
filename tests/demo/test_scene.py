"""Checks: what holds is counted, what does not is named."""

import io

import pytest

from bridge.demo.scene import Demo, DemoFailed
from bridge.demo.screen import Screen
from bridge.scripted.model import ScriptedModel


def test_checks_are_counted_and_a_failed_one_is_named() -> None:
    demo = Demo(Screen(io.StringIO()), ScriptedModel("http://x"))
    demo.check({"usage": 1}, "unused")
    with pytest.raises(DemoFailed, match="the reply was 'x'"):
        demo.check("", "the reply was 'x'")
    assert demo.checks == 1
