"""Names, arguments, and the words for models."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.loop_agent.toolbox import (
    DuplicateTool,
    Plan,
    Spec,
    Toolbox,
    ToolError,
    number,
    read_arguments,
    string,
)
from bridge.wire import codec


@dataclass
class Dummy:
    spec: Spec

    def plan(self, arguments: dict[str, object]) -> Plan:
        raise ToolError("never")


def tool(name: str) -> Dummy:
    return Dummy(Spec(name, "d", {"type": "object"}))


def test_tools_keep_their_order_and_can_be_found() -> None:
    box = Toolbox()
    box.add([tool("b"), tool("a")], "x")
    assert [spec["function"]["name"] for spec in box.specs()] == ["b", "a"]
    assert box.find("a").spec.name == "a"
    with pytest.raises(ToolError, match="The tools are: b, a"):
        box.find("c")
    with pytest.raises(ToolError, match="The tools are: none"):
        Toolbox().find("c")


def test_a_name_given_twice_is_an_error_that_names_both_owners() -> None:
    box = Toolbox()
    box.add([tool("a_b_c")], "server 'a'")
    with pytest.raises(DuplicateTool, match="'a_b_c': from server 'a' and from server 'a_b'"):
        box.add([tool("a_b_c")], "server 'a_b'")


@given(st.dictionaries(st.text(), st.none() | st.integers() | st.text()))
def test_an_object_is_read_as_it_is(arguments: dict[str, object]) -> None:
    assert read_arguments(codec.encode(arguments).decode()) == arguments


@given(st.text())
def test_whatever_a_model_writes_is_an_object_or_words_for_it(text: str) -> None:
    try:
        arguments = read_arguments(text)
    except ToolError:
        return
    assert isinstance(arguments, dict)


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_nothing_is_no_arguments(text: str) -> None:
    assert read_arguments(text) == {}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("null", "null"),
        ("true", "a boolean"),
        ("1.5", "a number"),
        ('"x"', "a string"),
        ("[{}]", "an array"),
    ],
)
def test_json_that_is_no_object_is_named(text: str, kind: str) -> None:
    with pytest.raises(ToolError, match=kind):
        read_arguments(text)


def test_a_lone_surrogate_is_no_obstacle() -> None:
    assert read_arguments('{"x":"\\ud83d"}') == {"x": "\ud83d"}
    with pytest.raises(ToolError):
        read_arguments('{"x":"\ud83d')


def test_single_arguments_are_checked() -> None:
    assert string({"a": "x"}, "a") == "x"
    assert string({}, "a", "d") == "d"
    assert number({}, "n", 5, 10) == 5
    assert number({"n": 50}, "n", 5, 10) == 10
    for wrong in (True, "5", 0, -1, [], {}):
        with pytest.raises(ToolError, match="'n'"):
            number({"n": wrong}, "n", 5, 10)
    for wrong in (None, 5, ["x"]):
        with pytest.raises(ToolError, match="'a'"):
            string({"a": wrong}, "a")
