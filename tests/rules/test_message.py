"""What a message is, however its role is spelt."""

import pytest

from bridge.rules.message import is_assistant, is_null
from protocol_schemas.model import ABSENT, ChatMessage, Raw


@pytest.mark.parametrize(
    "role",
    ['"assistant"', '"assist\\u0061nt"', '"\\u0061\\u0073\\u0073istant"', '"\\u0061ssistant"'],
)
def test_an_assistant_by_any_spelling(role: str) -> None:
    assert is_assistant(ChatMessage(role=Raw(role.encode())))


@pytest.mark.parametrize(
    "role",
    [
        *('"user"', '"Assistant"', '"assistant "', "null", '["assistant"]'),
        *('"\\u0061ssistent"', '"\\\\u0061ssistant"', '"\\ud83dassistant"', '"\\u00"'),
    ],
)
def test_whoever_is_no_assistant(role: str) -> None:
    assert not is_assistant(ChatMessage(role=Raw(role.encode())))
    assert not is_assistant(ChatMessage())


def test_null_is_not_absent() -> None:
    assert is_null(Raw(b"null"))
    assert not is_null(ABSENT)
    assert not is_null(Raw(b'"null"'))
