"""The content rule, case by case (cases/45, 49, 53)."""

import pytest

from bridge.rules.content import mend
from protocol_schemas.model import ABSENT, ChatMessage, Raw

CALLS = '[{"id":"1","type":"function","function":{"name":"f","arguments":""}}]'


def message(
    content: str | None,
    tool_calls: str | None = None,
    function_call: str | None = None,
    role: str = '"assistant"',
) -> ChatMessage:
    def raw(text: str | None) -> Raw:
        return ABSENT if text is None else Raw(text.encode())

    return ChatMessage(raw(role), raw(content), raw(tool_calls), raw(function_call))


@pytest.mark.parametrize("content", [None, "null"])
@pytest.mark.parametrize("tool_calls", [None, "null", "[]", "[ \n]"])
@pytest.mark.parametrize("function_call", [None, "null"])
@pytest.mark.parametrize("mode", ["keep", "empty", "null"])
def test_without_tool_calls_it_becomes_empty(content, tool_calls, function_call, mode) -> None:
    assert mend(message(content, tool_calls, function_call), mode) == {"content": b'""'}


@pytest.mark.parametrize(
    "calls",
    [
        *((CALLS, None), (None, '{"name":"f"}'), ("[]", "{}")),
        *((odd, None) for odd in ("{}", '"x"', "[null]", "0", "false")),
    ],
)
@pytest.mark.parametrize(
    "content, mode, wanted",
    [
        ("null", "keep", None),
        (None, "keep", None),
        ("null", "empty", b'""'),
        (None, "empty", b'""'),
        ("null", "null", None),
        (None, "null", b"null"),
        ('""', "null", None),
        ('""', "empty", None),
    ],
)
def test_beside_tool_calls_the_setting_decides(calls, content, mode, wanted) -> None:
    expected = {} if wanted is None else {"content": wanted}
    assert mend(message(content, *calls), mode) == expected


@pytest.mark.parametrize("content", ['""', '" "', '"null"', "[]", "[null]", "{}", "0", "false"])
def test_any_other_content_stays(content: str) -> None:
    assert mend(message(content), "empty") == {}


@pytest.mark.parametrize("role", ['"user"', '"system"', '"tool"', '"developer"', "null", "1"])
def test_other_roles_stay(role: str) -> None:
    assert mend(message("null", role=role), "empty") == {}
    assert mend(ChatMessage(), "empty") == {}
