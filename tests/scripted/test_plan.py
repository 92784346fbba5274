"""What the scripted model decides, directive by directive."""

import pytest

from bridge.scripted.plan import Plan, Tool, Turn, decide, objects, texts

ECHO = Tool("mcp__tiny__echo-back", {"properties": {"n": {"type": "integer"}}, "required": ["n"]})


def ask(*turns: Turn, tools: tuple[Tool, ...] = (ECHO,)) -> Plan:
    return decide(list(turns), list(tools), set())


def user(text: str) -> Turn:
    return Turn("user", text)


@pytest.mark.parametrize(
    ("prompt", "plan"),
    [
        ("hello", Plan("pong")),
        ("PLAIN", Plan("pong")),
        ("SAY good day", Plan("good day")),
        ("REASON", Plan("pong", reason="thinking about it")),
        ("REPLY_EMPTY", Plan("")),
        ("REPLY_WS", Plan("\n\n")),
        ("REPLY_NULL", Plan(None)),
        ("SLOW 0.5", Plan("pong", words=("w0 ", "w1 "))),
        ("FAIL 503 please", Plan(status=503)),
        ("USE_TOOL nowhere {}", Plan("no tool like 'nowhere' among 1")),
    ],
)
def test_each_directive_has_its_plan(prompt: str, plan: Plan) -> None:
    assert ask(user(f"<reminder/>\n{prompt}\nthanks")) == plan


def test_a_tool_is_called_by_a_part_of_its_name_with_the_arguments_given() -> None:
    plan = ask(user('USE_TOOL echo_back {"n": 7} now'))
    assert [(call.tool, call.arguments) for call in plan.calls] == [(ECHO, '{"n": 7}')]
    assert plan.text is None


def test_without_arguments_the_least_that_its_schema_wants_are_sent() -> None:
    assert ask(user("USE_TOOL_TEXT echo")).calls[0].arguments == '{"n":1}'
    assert ask(user("USE_TOOL_TEXT echo")).text == "calling it"


def test_parallel_calls_the_tool_twice() -> None:
    assert len(ask(user("PARALLEL echo")).calls) == 2


def test_once_the_tool_has_answered_its_result_is_told() -> None:
    turns = [user("USE_TOOL echo"), Turn("assistant"), Turn("tool", "seven")]
    assert ask(*turns) == Plan("the tool said: seven")


def test_the_newest_directive_counts_and_plain_talk_after_it_does_not() -> None:
    assert ask(user("SAY one"), Turn("assistant"), user("SAY two"), user("<date/>")) == Plan("two")


def test_a_failure_is_shown_once_for_each_prompt() -> None:
    failed: set[int] = set()
    first = [user("FAIL 500")]
    assert decide(first, [], failed).status == 500
    assert decide(first, [], failed).status == 200
    assert decide([*first, Turn("assistant"), user("FAIL 500")], [], failed).status == 500


def test_the_whole_text_is_the_words_and_what_follows() -> None:
    assert Plan("pong", words=("w0 ",)).whole == "w0 pong"
    assert Plan(None).whole is None


def test_content_of_any_shape_gives_its_texts() -> None:
    assert texts("a") == ["a"]
    assert texts(None) == []
    assert texts([{"type": "text", "text": "a"}, {"type": "image"}, 7]) == ["a"]
    assert objects({"not": "a list"}) == []
