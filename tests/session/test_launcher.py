"""What an agent is told of its client, and when a prompt names another agent than the session's."""

from typing import Any

import pytest

from bridge.errors import BridgeError
from bridge.session.launcher import capabilities, check_unchanged
from protocol_schemas.host import Config

NOTHING_MORE = {"session": {"notices": {}, "compaction": {}}}


def test_capabilities_are_what_the_host_gave_and_nothing_else() -> None:
    assert capabilities(Config(), native=False) == NOTHING_MORE
    given = {"_meta": {"x": 1}, "fs": {"readTextFile": True}, "session": {"own": {}}}
    assert capabilities(Config(client_capabilities=given), native=False) == {
        "_meta": {"x": 1},
        "fs": {"readTextFile": True},
        "session": {"own": {}, "notices": {}, "compaction": {}},
    }
    assert given["session"] == {"own": {}}


def test_only_a_native_host_can_set_boolean_options() -> None:
    native = capabilities(Config(), native=True)
    assert native["session"]["configOptions"] == {"boolean": {}}
    own = Config(client_capabilities={"session": {"configOptions": {"mine": 1}}})
    assert capabilities(own, native=True)["session"]["configOptions"] == {"mine": 1}


@pytest.mark.parametrize("odd", [None, [], "yes", 7])
def test_a_session_capability_of_another_shape_is_replaced(odd: Any) -> None:
    assert capabilities(Config(client_capabilities={"session": odd}), native=False) == NOTHING_MORE


def test_services_are_advertised_in_acp_s_own_words() -> None:
    config = Config(client_services=["fs", "terminal", "elicitation"])
    advertised = capabilities(config, native=False)
    assert advertised["fs"] == {"readTextFile": True, "writeTextFile": True}
    assert advertised["terminal"] is True
    assert advertised["elicitation"] == {"form": {}, "url": {}}


HELD = Config(command=["a"], mcp_urls={"t": "http://x"}, system_prompt="s", session_meta={"k": 1})
SAME: dict[str, Any] = {
    "command": ["a"],
    "mcp_urls": {"t": "http://x"},
    "system_prompt": "s",
    "session_meta": {"k": 1},
}
OTHERS: list[tuple[str, Any]] = [
    ("command", ["b"]),
    ("command", []),
    ("mcp_urls", {}),
    ("mcp_urls", None),
    ("mcp_urls", {"t": "http://y"}),
    ("system_prompt", ""),
    ("system_prompt", "t"),
    ("session_meta", None),
    ("session_meta", {"k": 2}),
]


@pytest.mark.parametrize(("name", "value"), OTHERS)
def test_the_first_generation_must_repeat_its_session_s_settings(name: str, value: Any) -> None:
    check_unchanged(Config(messages=[], **SAME), HELD, native=False)
    with pytest.raises(BridgeError, match=f"config.{name} differs") as caught:
        check_unchanged(Config(messages=[], **(SAME | {name: value})), HELD, native=False)
    assert caught.value.code == "invalid_request"


LOST: list[tuple[str, Any]] = [
    ("command", ["b"]),
    ("mcp_urls", {"t": "http://y"}),
    ("mcp_servers", [{"name": "t", "command": "c"}]),
    ("cwd", "/tmp"),
]
"""What a session cannot be given any more."""


@pytest.mark.parametrize(("name", "value"), [case for case in OTHERS if case not in LOST])
def test_the_others_may_leave_out_what_they_said_and_give_a_turn_its_own(
    name: str, value: Any
) -> None:
    for native in (False, True):
        check_unchanged(Config(user_contents=[], **(SAME | {name: value})), HELD, native=native)


@pytest.mark.parametrize(("name", "value"), LOST)
def test_the_native_one_is_told_what_a_running_session_cannot_be_given(
    name: str, value: Any
) -> None:
    check_unchanged(Config(user_contents=[]), Config(**(SAME | {name: value})), native=True)
    with pytest.raises(BridgeError, match=f"config.{name} differs") as caught:
        check_unchanged(Config(user_contents=[], **(SAME | {name: value})), HELD, native=True)
    assert caught.value.code == "invalid_request"


@pytest.mark.parametrize(("name", "value"), LOST)
def test_the_second_one_goes_on_with_the_tools_it_has(
    name: str, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    config = Config(user_contents=[], **(SAME | {name: value}))
    if name == "command":
        with pytest.raises(BridgeError, match=r"config\.command differs"):
            check_unchanged(config, HELD, native=False)
        return
    with caplog.at_level("WARNING"):
        check_unchanged(config, HELD, native=False)
    [record] = caplog.records
    assert f"config.{name} differs" in record.getMessage()


def test_absent_and_empty_settings_are_the_same_to_the_first_generation() -> None:
    bare = Config(command=["a"])
    empty = Config(messages=[], command=["a"], mcp_urls={}, system_prompt="", session_meta={})
    check_unchanged(empty, bare, native=False)
    check_unchanged(Config(messages=[], command=["a"]), bare, native=False)
