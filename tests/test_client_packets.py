"""Requests and responses as the Python API has them."""

from typing import Any

import pytest

from bridge.client_packets import TurnFailed, error_of, request_body, turn_of
from bridge.errors import BridgeError
from bridge.wire import packets


def test_a_request_is_its_json() -> None:
    assert (
        request_body("prompt", {"id": 1, "text": "\u00e9"}) == '{"id":1,"text":"\u00e9"}'.encode()
    )


def test_what_json_cannot_say_is_refused() -> None:
    with pytest.raises(BridgeError, match="prompt cannot be written as JSON") as caught:
        request_body("prompt", {"text": object()})
    assert (caught.value.code, caught.value.origin) == ("invalid_request", "host")


def test_what_no_packet_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "CEILING", 20)
    assert len(request_body("send", {"m": "x" * 12})) == 20
    with pytest.raises(BridgeError, match="send has 21 bytes, a packet at most 20") as caught:
        request_body("send", {"m": "x" * 13})
    assert caught.value.code == "limit"


def test_a_failure_is_told_with_all_that_is_known() -> None:
    error = error_of(
        {
            "id": 1,
            "ok": False,
            "error": "no",
            "code": "agent_exited",
            "origin": "agent",
            "error_data": {"a": 1},
            "result": {"reply": "x"},
            "turn": 2,
            "exit_code": 3,
        }
    )
    assert (error.message, error.code, error.origin) == ("no", "agent_exited", "agent")
    assert (error.data, error.extra) == ({"a": 1}, {"exit_code": 3})


@pytest.mark.parametrize("response", [{}, {"ok": False, "result": None}, {"result": []}])
def test_what_a_daemon_left_out_has_a_value(response: dict[str, Any]) -> None:
    error, turn = error_of(response), turn_of(response)
    assert (error.message, error.code) == ("the daemon gave no words", "internal")
    assert (turn.reply, turn.stop_reason, turn.outcome) == ("", None, "failed")
    assert (turn.response_metadata, turn.update_metadata) == ({}, [])
    failed = TurnFailed(error, turn)
    assert (str(failed), failed.turn) == (str(error), turn)
