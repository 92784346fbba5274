"""The errors a host is told of."""

from typing import get_args

import pytest

from bridge.errors import (
    BridgeError,
    Code,
    Origin,
    RequestFailed,
    UsageError,
    first_of,
    invalid_request,
    meant,
    unsupported,
)


def test_an_error_has_words_a_code_and_an_origin() -> None:
    error = BridgeError("gone", code="agent_exited", origin="agent", extra={"exit_code": 3})
    assert (str(error), error.message) == ("gone", "gone")
    assert (error.code, error.origin, error.extra) == ("agent_exited", "agent", {"exit_code": 3})
    assert BridgeError("a bug").code == "internal"


@pytest.mark.parametrize(
    ("error", "code", "origin"),
    [
        (invalid_request("x"), "invalid_request", "host"),
        (unsupported("x"), "unsupported", "agent"),
    ],
)
def test_the_usual_ones_have_short_names(error: BridgeError, code: str, origin: str) -> None:
    assert (error.code, error.origin) == (code, origin)


def test_the_codes_and_origins_are_those_hosts_know() -> None:
    assert set(get_args(Code)) == {
        *("agent_error", "agent_exited", "spawn_failed", "timeout", "cancelled"),
        *("session_not_found", "unsupported", "invalid_request", "auth_required", "mcp_failed"),
        *("outcome_unknown", "model_upstream", "limit", "protocol", "internal"),
    }
    assert set(get_args(Origin)) == {"host", "agent", "mcp", "model", "bridge"}


def test_a_refusal_keeps_the_peer_s_code_and_data() -> None:
    failed = RequestFailed(-32002, "no such session", {"sessionId": "s"})
    assert (failed.code, str(failed), failed.data) == (
        -32002,
        "no such session",
        {"sessionId": "s"},
    )
    assert not isinstance(UsageError("x"), BridgeError)


def test_the_first_failure_is_found_in_nested_groups() -> None:
    failure = ValueError("the one")
    group = ExceptionGroup("outer", [ExceptionGroup("inner", [failure, TypeError()])])
    assert first_of(group) is failure


@pytest.mark.parametrize(
    ("name", "hint"),
    [("recrod", "; did you mean 'record'?"), ("comand", "; did you mean 'command'?"), ("zzz", "")],
)
def test_a_name_that_is_nearly_right_is_guessed(name: str, hint: str) -> None:
    assert meant(name, ["command", "record", "agent"]) == hint
