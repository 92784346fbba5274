"""Every prompt of the play has its answer, with and without the tools it needs."""

import pytest

from bridge.demo import script
from bridge.scripted.plan import Tool, Turn
from bridge.wire import codec

TOOLS = [Tool("notes_read_note", {}), Tool("bash", {})]


def said(*turns: Turn, tools: list[Tool] = TOOLS) -> str:
    return script.answer(list(turns), tools, set()).whole or ""


@pytest.mark.parametrize("prompt", [script.HELLO, script.COUNT, script.FRENCH])
def test_what_is_said_is_said_word_by_word(prompt: str) -> None:
    plan = script.answer([Turn("user", prompt)], [], set())
    assert len(plan.words) >= 4
    assert plan.whole == " ".join((plan.whole or "").split())
    assert "nothing in my script" not in (plan.whole or "")


def test_the_newest_message_counts() -> None:
    steered = [Turn("user", script.COUNT), Turn("assistant", "one"), Turn("user", script.FRENCH)]
    assert said(*steered).startswith("un,")


@pytest.mark.parametrize(
    ("prompt", "tool"),
    [
        (script.NOTE, "notes_read_note"),
        (script.SHELL, "bash"),
        (script.DELETE, "bash"),
    ],
)
def test_a_tool_is_called_and_its_result_told(prompt: str, tool: str) -> None:
    plan = script.answer([Turn("user", prompt)], TOOLS, set())
    assert [call.tool.name for call in plan.calls] == [tool]
    assert isinstance(codec.decode(plan.calls[0].arguments.encode()), dict)
    result = [Turn("user", prompt), Turn("assistant"), Turn("tool", "RESULT\n")]
    assert said(*result).endswith("RESULT")
    assert "no tool like" in said(Turn("user", prompt), tools=[])


def test_counting_to_a_million_outlasts_any_demo() -> None:
    plan = script.answer([Turn("user", script.MILLION)], [], set())
    assert len(plan.words) * plan.pause > 60


def test_what_is_not_in_the_script_is_said_to_be_so() -> None:
    assert "'what?'" in said(Turn("user", "what?"))
    assert "''" in said()
