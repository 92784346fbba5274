"""Packets of the native protocol as the Python API has them: a request's bytes, a response's turn.

Rule: whatever a daemon left out has a value; what no packet can hold is refused before anything is
sent. Pure; used by `bridge.client`.
"""

from typing import Any

import msgspec

from bridge.errors import BridgeError
from bridge.wire import codec, packets


class Turn(msgspec.Struct):
    """One finished turn (HOST_PROTOCOL §4). `response`: the whole packet."""

    reply: str
    stop_reason: str | None
    response_metadata: dict[str, Any]
    update_metadata: list[dict[str, Any]]
    number: int | None
    outcome: str
    agent_stop_reason: str | None
    usage: dict[str, Any] | None
    response: dict[str, Any]


class TurnFailed(BridgeError):
    """A turn that ended with an error; `turn` holds what had come by then."""

    def __init__(self, error: BridgeError, turn: Turn) -> None:
        super().__init__(
            error.message, code=error.code, origin=error.origin, data=error.data, extra=error.extra
        )
        self.turn = turn


def request_body(operation: str, request: dict[str, Any]) -> bytes:
    """A request's packet; raises BridgeError for what none can hold, and then nothing is sent."""
    try:
        body = codec.encode(request)
    except (codec.JSONError, TypeError) as error:
        words = f"{operation} cannot be written as JSON: {error}"
        raise BridgeError(words, code="invalid_request", origin="host") from None
    if len(body) > packets.CEILING:
        raise BridgeError(
            f"{operation} has {len(body)} bytes, a packet at most {packets.CEILING}: "
            "nothing was sent",
            code="limit",
            origin="host",
        )
    return body


_BESIDE = ("turn", "agent_stop_reason", "outcome", "usage", "truncated")


def error_of(response: dict[str, Any]) -> BridgeError:
    """Why a request failed."""
    known = ("id", "ok", "result", "error", "code", "origin", "error_data", *_BESIDE)
    return BridgeError(
        response.get("error") or "the daemon gave no words",
        code=response.get("code", "internal"),
        origin=response.get("origin", "bridge"),
        data=response.get("error_data"),
        extra={key: value for key, value in response.items() if key not in known},
    )


def turn_of(response: dict[str, Any]) -> Turn:
    """What came of a prompt, also of one that failed."""
    result = codec.mapping(response.get("result")) or {}
    return Turn(
        reply=result.get("reply", ""),
        stop_reason=result.get("stop_reason"),
        response_metadata=result.get("response_metadata", {}),
        update_metadata=result.get("update_metadata", []),
        number=response.get("turn"),
        outcome=response.get("outcome", "failed"),
        agent_stop_reason=response.get("agent_stop_reason"),
        usage=response.get("usage"),
        response=response,
    )
