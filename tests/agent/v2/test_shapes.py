"""Version 2's values in version 1's terms: nothing lost, and what version 1 reads in its place."""

from typing import Any

import pytest

from bridge.agent.v2 import shapes
from bridge.errors import BridgeError

INFO = {"name": "bridge", "version": "1"}


def test_the_offer_has_both_versions_names() -> None:
    first = {"session": {"notices": {}}, "fs": {"readTextFile": True}, "terminal": True}
    params = {"protocolVersion": 2, "clientCapabilities": first, "clientInfo": INFO}
    assert shapes.offer(params) == {
        "protocolVersion": 2,
        "info": INFO,
        "capabilities": {},
        "clientInfo": INFO,
        "clientCapabilities": first,
    }


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"elicitation": {"form": {}}}, {"elicitation": {"form": {}}}),
        ({"auth": {"terminal": True}}, {"auth": {"terminal": {}}}),
        ({"auth": {"terminal": False}}, {}),
        ({"auth": {"terminal": {}, "_meta": {}}}, {"auth": {"terminal": {}, "_meta": {}}}),
        ({"plan": {}, "_meta": {"x": 1}, "other": {}}, {"_meta": {"x": 1}, "other": {}}),
        ({}, {}),
    ],
)
def test_what_the_client_can(given: dict[str, Any], found: dict[str, Any]) -> None:
    assert shapes.client_capabilities(given) == found


def test_what_the_agent_can_is_where_version_1_looks_too() -> None:
    session = {"prompt": {"image": {}, "audio": None}, "mcp": {"stdio": {}, "http": {}}}
    capabilities = {"session": session | {"fork": {}, "delete": None}, "providers": {}}
    assert shapes.agent_capabilities(capabilities) == capabilities | {
        "loadSession": True,
        "promptCapabilities": {"image": True, "audio": False, "embeddedContext": False},
        "mcpCapabilities": {"http": True, "sse": False, "stdio": True},
        "sessionCapabilities": {"fork": {}, "delete": None, "list": {}, "resume": {}, "close": {}},
    }


@pytest.mark.parametrize("capabilities", [{}, {"session": None}, {"session": []}])
def test_an_agent_without_sessions_has_nothing_of_them(capabilities: dict[str, Any]) -> None:
    found = shapes.agent_capabilities(capabilities)
    assert (found["loadSession"], found["sessionCapabilities"]) == (False, {})


def test_the_answer_to_initialize() -> None:
    env = [{"name": "A", "value": "1"}]
    method = {"type": "terminal", "methodId": "m", "name": "M", "env": env}
    found = shapes.initialized({"protocolVersion": 2, "info": INFO, "authMethods": [method, 7]})
    assert found["agentInfo"] == INFO
    assert found["authMethods"] == [method | {"id": "m", "env": {"A": "1"}}]
    assert shapes.initialized({"protocolVersion": 2, "authMethods": None})["authMethods"] == []


def test_servers() -> None:
    stdio = {"name": "x", "command": "/x"}
    http = {"type": "http", "name": "y", "url": "http://127.0.0.1/"}
    assert shapes.mcp_server(stdio) == {"type": "stdio", **stdio}
    assert shapes.mcp_server(http) == http
    with pytest.raises(BridgeError, match="'z'"):
        shapes.mcp_server({"type": "sse", "name": "z"})


CHOICES = [{"value": "a", "name": "A"}, {"value": "b", "name": "B", "description": "d"}]
MODE = {"configId": "how", "category": "mode", "type": "select", "currentValue": "a"}


def test_options_have_both_names() -> None:
    grouped = MODE | {"options": [{"groupId": "g", "name": "G", "options": CHOICES}]}
    [found] = shapes.config_options([grouped, "no option"])
    assert found["id"] == found["configId"] == "how"
    assert found["options"][0]["group"] == found["options"][0]["groupId"] == "g"
    assert shapes.config_options(None) == []


@pytest.mark.parametrize(
    "options",
    [CHOICES, [{"groupId": "g", "options": CHOICES[:1]}, {"groupId": "h", "options": CHOICES[1:]}]],
)
def test_modes_are_the_option_of_that_category(options: list[Any]) -> None:
    modes = shapes.Modes()
    assert modes.take(
        [{"category": "model", "currentValue": "x"}, MODE | {"options": options}]
    ) == {
        "currentModeId": "a",
        "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B", "description": "d"}],
    }
    assert (modes.config_id, modes.current) == ("how", "a")
    assert modes.take([]) is None
    assert modes.config_id is None


def test_a_plan_of_items() -> None:
    entries = [{"content": "x", "priority": "low", "status": "pending"}]
    update = {
        "sessionUpdate": "plan_update",
        "plan": {"type": "items", "planId": "p", "entries": entries},
    }
    found = {"sessionUpdate": "plan", "planId": "p", "entries": entries}
    assert shapes.plan(update) == (found, False)
    entries[0]["status"] = "cancelled"
    told = shapes.plan(update)
    assert told is not None
    assert (told[0]["entries"][0]["status"], told[1]) == ("completed", True)


@pytest.mark.parametrize("plan", [None, {"type": "markdown"}, {"type": "items", "entries": 1}])
def test_a_plan_of_another_kind_is_left_as_it_is(plan: Any) -> None:
    assert shapes.plan({"plan": plan}) is None


@pytest.mark.parametrize("status", [None, [], {}, ["cancelled"], 7, "odd"])
def test_a_plan_s_entry_may_have_any_status(status: Any) -> None:
    entries = [{"content": "x", "status": status}]
    told = shapes.plan({"plan": {"type": "items", "entries": entries}})
    assert told == ({"sessionUpdate": "plan", "planId": None, "entries": entries}, False)


@pytest.mark.parametrize("group", [{"groupId": 1}, {"groupId": 1, "options": 5}])
def test_a_group_without_options_offers_no_mode(group: dict[str, Any]) -> None:
    modes = shapes.Modes().take([MODE | {"options": [group, {"value": "a"}]}])
    assert modes == {"currentModeId": "a", "availableModes": [{"id": "a"}]}
