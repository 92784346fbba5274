"""What lines add up to."""

from bridge.loop_agent.state import State, tool_result
from protocol_schemas.session_file import Head, Message, Mode, Rule, Spent, Title


def head(**more: str) -> Head:
    return Head("s", "/tmp", "2026-01-01T00:00:00Z", **more)


def user(text: str) -> Message:
    return Message({"role": "user", "content": text})


def assistant(*calls: str) -> Message:
    return Message({"role": "assistant", "content": "", "tool_calls": [{"id": c} for c in calls]})


def test_lines_add_up() -> None:
    update = {"sessionUpdate": "tool_call", "toolCallId": "c"}
    state = State(
        head(),
        [
            Title("t"),
            Mode("auto"),
            Rule("bash", True),
            Rule("bash", False),
            user("hi"),
            Message(tool_result("c", "x"), [update]),
            head(system="be brief"),
        ],
    )
    assert (state.title, state.mode, state.rules) == ("t", "auto", {"bash": False})
    assert state.updates == [update]
    assert state.tool_call_ids == {"c"}
    assert state.request_messages == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ]


def test_without_a_system_message_there_is_none() -> None:
    assert State(head(), [user("hi")]).request_messages == [{"role": "user", "content": "hi"}]


def test_calls_without_a_result_are_found() -> None:
    state = State(head())
    assert state.unanswered() == []
    for line, expected in [
        (user("hi"), []),
        (assistant("a", "b", "c"), ["a", "b", "c"]),
        (Message(tool_result("b", "x")), ["a", "c"]),
        (Message(tool_result("a", "x")), ["c"]),
        (Message(tool_result("c", "x")), []),
        (assistant(), []),
    ]:
        state.apply(line)
        assert state.unanswered() == expected


def test_tokens_add_up_and_none_are_made_up() -> None:
    state = State(head())
    assert state.usage() is None
    state.apply(Spent(10, 2))
    assert state.usage() == {"totalTokens": 12, "inputTokens": 10, "outputTokens": 2}
    state.apply(Spent(1, 1, 1, 1))
    assert state.usage() == {
        "totalTokens": 14,
        "inputTokens": 11,
        "outputTokens": 3,
        "thoughtTokens": 1,
        "cachedReadTokens": 1,
    }
