"""The reply of an agent whose messages have ids: the last one begun, as it stands at the end."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.session.message_turn import MessageTurn
from tests.session.updating import chunk, incoming

OMITTED = object()
IDS = st.sampled_from("abc")
STEPS = st.tuples(IDS, st.text(min_size=1, max_size=3)) | st.tuples(
    IDS, st.none() | st.just(OMITTED) | st.lists(st.text(max_size=3), max_size=2)
)


def whole(ident: str, content: Any) -> Any:
    if isinstance(content, list):
        content = [{"type": "text", "text": text} for text in content]
    given = {} if content is OMITTED else {"content": content}
    return incoming({"sessionUpdate": "agent_message", "messageId": ident, **given})


@given(st.lists(STEPS, max_size=12))
def test_the_reply_is_the_last_message_that_has_text(steps: list[tuple[str, Any]]) -> None:
    turn, texts = MessageTurn(1), dict[str, str]()
    for ident, content in steps:
        if isinstance(content, str):
            turn.update(chunk(content, ident))
            texts[ident] = texts.get(ident, "") + content
        else:
            turn.update(whole(ident, content))
            if content is not OMITTED and ("".join(content or []) or ident in texts):
                texts[ident] = "".join(content or [])
    result = turn.result()
    filled = [text for text in texts.values() if text]
    assert result.reply == (filled[-1] if filled else "")
    assert result.visible == turn.visible == bool(result.reply.strip())


def test_what_came_before_the_prompt_was_taken_in_is_forgotten() -> None:
    turn = MessageTurn(1)
    turn.update(chunk("theirs", "a"))
    turn.update(incoming({"sessionUpdate": "tool_call", "toolCallId": "t", "_meta": {"k": 1}}))
    turn.anew()
    assert not turn.visible
    turn.update(chunk("ours", "b"))
    result = turn.result()
    assert (result.reply, result.tool_statuses, result.update_metadata) == ("ours", [], [])


@pytest.mark.parametrize("content", [[{"type": "text", "text": 7}], "text", {"type": "text"}])
def test_content_that_cannot_be_read_changes_nothing_for_the_worse(content: Any) -> None:
    turn = MessageTurn(1)
    turn.update(chunk("said", "a"))
    turn.update(incoming({"sessionUpdate": "agent_message", "messageId": "b", "content": content}))
    assert turn.result().reply == "said"


def test_many_messages_are_gathered_in_linear_time() -> None:
    turn = MessageTurn(1)
    for number in range(40_000):
        turn.update(chunk("x", str(number % 20_000)))
    assert turn.result().reply == "xx"
