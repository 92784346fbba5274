"""Null `refusal`, `function_call` and `audio` are left out, of assistants alone."""

from bridge.rules.null_fields import mend
from protocol_schemas.model import ChatMessage, Raw

NULL = Raw(b"null")


def test_what_is_null_is_left_out() -> None:
    message = ChatMessage(role=Raw(b'"assistant"'), refusal=NULL, function_call=NULL, audio=NULL)
    assert mend(message) == {"refusal": None, "function_call": None, "audio": None}


def test_what_is_not_null_stays() -> None:
    message = ChatMessage(role=Raw(b'"assistant"'), refusal=Raw(b'"no"'), audio=Raw(b'{"id":1}'))
    assert mend(message) == {}


def test_other_roles_and_fields_stay() -> None:
    assert mend(ChatMessage(role=Raw(b'"user"'), refusal=NULL)) == {}
    assert mend(ChatMessage(role=Raw(b'"assistant"'), content=NULL, tool_calls=NULL)) == {}
