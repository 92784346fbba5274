"""bridge.agent.placeholders: how templates are filled, what is wrong with a profile as a whole."""

from typing import Any

import pytest

from bridge.agent import placeholders
from bridge.agent.placeholders import ABSENT, fill
from bridge.errors import UsageError
from bridge.wire import codec
from protocol_schemas.profile import Profile

VALUES = {
    "name": lambda: "n",
    "none": lambda: None,
    "list": lambda: ["a", "b"],
    "table": lambda: {"k": 1},
    "number": lambda: 7,
    "dollar": lambda: "${name}",
}
LEAST: dict[str, Any] = {
    "name": "x",
    "title": "X",
    "launch": {"command": ["x"]},
    "wires": {"chat": {"values": {"api": "a"}}, "anthropic": {"values": {"other": "b"}}},
}


@pytest.mark.parametrize(
    "template, filled",
    [
        ("plain $HOME $name {name}", "plain $HOME $name {name}"),
        ("${name}", "n"),
        ("a-${name}-${number}", "a-n-7"),
        ("${list}", ["a", "b"]),
        ("x=${list}", "x=a,b"),
        ("${table}", {"k": 1}),
        ("x ${table}", 'x {"k":1}'),
        ("$${name}", "${name}"),
        ("$${name} ${name}", "${name} n"),
        ("${dollar}", "${name}"),
        ("${none}", ABSENT),
        ("a ${none}", ABSENT),
        (["a", "${none}", "${name}"], ["a", "n"]),
        ({"a": "${none}", "b": {"c": "${name}"}}, {"b": {"c": "n"}}),
        ({"a": {"b": "${none}"}}, ABSENT),
        ({"${name}": 1, "${none}": 2}, {"n": 1}),
        ({}, {}),
        ([], []),
        (True, True),
    ],
)
def test_what_becomes_of_a_template(template: Any, filled: Any):
    assert fill(template, VALUES) == filled


def test_a_value_is_asked_for_only_where_it_is_used():
    def never() -> Any:
        raise AssertionError

    assert fill(["${name}"], VALUES | {"other": never}) == ["n"]


def profile(**changes: Any) -> Profile:
    return codec.convert(LEAST | changes, Profile)


def test_what_is_used_where_is_known():
    files = [
        {"path": "a", "json": {"k": ["${port}"]}},
        {"path": "b", "text": "${none of ours}", "executable": True},
    ]
    launch = {"command": ["${bin}/x"], "environment": {"A": {"${token}": 1}, "B": "$${cwd}"}}
    found = profile(launch=launch, files=files)
    placeholders.check(found)
    assert placeholders.everywhere(found) == {"bin", "token", "port"}
    assert placeholders.everywhere(found, with_command=False) == {"token", "port"}


def test_a_word_of_any_wire_may_be_used():
    placeholders.check(profile(launch={"command": ["${wire.api}", "${wire.other}"]}))


@pytest.mark.parametrize(
    "changes, words",
    [
        (
            {"launch": {"command": ["x", "${binn}/y"]}},
            r"launch\.command\[1\].*\$\{binn\}.* bin, cwd",
        ),
        ({"launch": {"command": ["x"], "environment": {"A": {"b": "${}"}}}}, r"environment\.A\.b"),
        ({"launch": {"command": ["x", "${prompt}"]}}, r"launch\.command\[1\].*\$\{prompt\}"),
        ({"launch": {"command": ["x"], "task": True}}, r"has no \$\{prompt\}"),
        ({"session": {"meta": {"a": ["${wire.nothing}"]}}}, r"session\.meta\.a\[0\]"),
        ({"files": [{"path": "a"}]}, r"files\[0\] \(a\): give one of"),
        ({"files": [{"path": "a", "text": "", "json": {}}]}, r"files\[0\] \(a\): give one of"),
        ({"files": [{"path": "a/../../b", "text": ""}]}, "leaves the state directory"),
        ({"files": [{"path": "a", "json": {}, "executable": True}]}, "needs text"),
        ({"files": [{"path": "a", "toml": {"k": "${x}"}}]}, r"files\[0\]\[2\]\.k|files\[0\]"),
        ({"mcp": {"server": {"url": "${state}"}}}, r"mcp\.server\.url.* server\.name"),
        ({"tools": {"rule": {"a": "${name}"}}}, r"tools\.rule\.a.* tool"),
        ({"mcp": {"via": "file"}}, r"mcp\.via"),
        ({"files": [{"path": "a", "json": {"m": "${mcp.servers}"}}]}, r"mcp\.via"),
        ({"quirks": {"exits": {"x": "y"}}}, "'x' is no exit code"),
        *(
            ({"side_calls": [{"wire": "chat", "field": "a", "purpose": "p"} | sign]}, words)
            for sign, words in [
                ({}, r"side_calls\[0\]: give one"),
                ({"equals": 1, "matches": "x"}, r"side_calls\[0\]: give one"),
                ({"matches": "("}, r"side_calls\[0\]\.matches"),
            ]
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(changes: dict[str, Any], words: str):
    with pytest.raises(UsageError, match=words):
        placeholders.check(profile(**changes))
