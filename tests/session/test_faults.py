"""What went wrong with an agent, in the host's terms."""

from types import SimpleNamespace
from typing import Any

import pytest

from bridge.errors import BridgeError, RequestFailed
from bridge.rpc.connection import ConnectionEnded
from bridge.session.faults import agent_error, death, failures
from bridge.wire.codec import JSONError

METHODS = [{"id": "key"}]


def agent(died: BridgeError | None = None, methods: Any = METHODS) -> Any:
    initialized = SimpleNamespace(auth_methods=methods)
    return SimpleNamespace(death=died, client=SimpleNamespace(initialized=initialized))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "short"),
        ({}, "short"),
        ({"details": ""}, "short"),
        ({"details": 5}, "short"),
        ([{"details": "no"}], "short"),
        ("text", "short"),
        ({"details": "the whole story", "x": 1}, "the whole story"),
    ],
)
def test_an_agent_s_error_has_its_best_words_and_all_its_data(data: Any, words: str) -> None:
    error = agent_error(RequestFailed(-32603, "short", data), agent())
    assert (error.message, error.code, error.origin) == (words, "agent_error", "agent")
    assert (error.data, error.extra) == (data, {"agent_code": -32603})


@pytest.mark.parametrize("methods", [METHODS, None])
def test_a_wish_for_authentication_lists_the_ways(methods: Any) -> None:
    error = agent_error(RequestFailed(-32000, "log in"), agent(methods=methods))
    assert (error.code, error.message) == ("auth_required", "log in")
    assert error.extra == {"agent_code": -32000, "auth_methods": methods or []}


def test_a_death_is_an_error_of_its_own_for_each_request() -> None:
    cause = BridgeError("exit 3", code="protocol", origin="agent", extra={"exit_code": 3})
    first, second = death(agent(cause), "words"), death(agent(cause), "words")
    assert first is not second
    assert (first.message, first.code, first.extra) == ("exit 3", "protocol", {"exit_code": 3})
    unknown = death(agent(), "words")
    assert (unknown.message, unknown.code) == ("words", "agent_exited")


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (RequestFailed(-32603, "no"), "agent_error"),
        (RequestFailed(-32000, "no"), "auth_required"),
        (ConnectionEnded("gone"), "agent_exited"),
        (JSONError("odd"), "protocol"),
    ],
)
def test_what_a_call_raises_becomes_the_host_s(raised: Exception, code: str) -> None:
    with pytest.raises(BridgeError) as caught, failures(agent(), "session/new"):
        raise raised
    assert caught.value.code == code
    assert caught.value.__cause__ is raised
    if code == "protocol":
        assert "session/new" in caught.value.message


def test_other_errors_and_none_pass() -> None:
    with failures(agent(), "m"):
        pass
    with pytest.raises(ZeroDivisionError), failures(agent(), "m"):
        raise ZeroDivisionError
