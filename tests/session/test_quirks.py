"""bridge.session.quirks: what the host says comes before what the profile says."""

from types import SimpleNamespace
from typing import Any

import pytest

from bridge.session import quirks
from protocol_schemas.host import Config
from protocol_schemas.profile import Quirks


def session(given: Quirks | None, held: bool | None = None, told: str | None = None) -> Any:
    profile = None if given is None else SimpleNamespace(quirks=given)
    opened = SimpleNamespace(profile=profile, told=told)
    return SimpleNamespace(opened=opened, config=Config(allow_empty_tool_reply=held))


NONE: Any = SimpleNamespace(opened=None, config=Config())


def test_without_a_session_or_a_profile_there_are_none():
    for one in (NONE, session(None)):
        assert quirks.told(one) is None
        assert quirks.settle(one) == 0
        assert quirks.allows_empty(one, Config()) is False


def test_a_profiles_are_its_sessions():
    one = session(Quirks(settle=0.5, allow_empty_tool_reply=True), told="be kind")
    assert (quirks.told(one), quirks.settle(one)) == ("be kind", 0.5)
    assert quirks.allows_empty(one, Config()) is True


@pytest.mark.parametrize(
    "prompt, held, profile, allowed",
    [
        (None, None, True, True),
        (None, False, True, False),
        (None, True, False, True),
        (False, True, True, False),
        (True, False, False, True),
    ],
)
def test_the_prompt_says_it_first_then_the_session_then_the_profile(
    prompt: bool | None, held: bool | None, profile: bool, allowed: bool
):
    one = session(Quirks(allow_empty_tool_reply=profile), held)
    assert quirks.allows_empty(one, Config(allow_empty_tool_reply=prompt)) is allowed
