"""`tool_calls: []` is left out, and nothing else."""

import pytest

from bridge.rules.empty_tool_calls import mend
from protocol_schemas.model import ChatMessage, Raw


def message(tool_calls: bytes, role: bytes = b'"assistant"') -> ChatMessage:
    return ChatMessage(role=Raw(role), tool_calls=Raw(tool_calls))


@pytest.mark.parametrize("empty", [b"[]", b"[ ]", b"[\n\t]"])
def test_an_empty_array_is_left_out(empty: bytes) -> None:
    assert mend(message(empty)) == {"tool_calls": None}


@pytest.mark.parametrize("other", [b"", b"null", b"[1]", b"{}", b'""'])
def test_anything_else_stays(other: bytes) -> None:
    assert mend(message(other)) == {}
    assert mend(message(b"[]", b'"user"')) == {}
