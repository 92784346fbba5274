"""Responses as each generation of host expects them (HOST_PROTOCOL §2-§4). Pure.

Rules: `result` has exactly its four keys in every answer to a prompt, failed ones too (verifiers
parses it strictly before it looks at `ok`); anything more stands beside it. A request without an
id is answered without one, as generation A does.
"""

from typing import Any, Protocol

from bridge.errors import BridgeError
from bridge.wire import codec

CUT_REPLY = 8 * 1024 * 1024
"""Characters of a reply that fit into a packet, however they are escaped."""
_SHORT = 10_000

Request = dict[str, Any]
Response = dict[str, Any]


class Result(Protocol):
    """What a turn came to (bridge.session.turn.TurnResult)."""

    reply: str
    stop_reason: str | None
    response_metadata: dict[str, Any]
    update_metadata: list[dict[str, Any]]
    turn: int | None
    agent_stop_reason: str | None
    outcome: Any
    usage: dict[str, Any] | None
    tool_statuses: list[str]
    limit: str | None
    model_errors: list[dict[str, Any]] | None
    open_tool_calls: list[str]
    error: BridgeError | None

    @property
    def visible(self) -> bool: ...


def success(request: Request, result: Any) -> Response:
    """`{"id", "ok": true, "result"}`; without id and result for a generation A request."""
    if is_legacy(request):
        return {"ok": True}
    return {"id": request.get("id"), "ok": True, "result": result}


def failure(request: Request, error: BridgeError) -> Response:
    """`ok` false with the words, the code, the origin and what else is known of the error."""
    response: Response = {} if is_legacy(request) else {"id": request.get("id")}
    response |= {"ok": False, "error": error.message, "code": error.code, "origin": error.origin}
    if (data := codec.mapping(error.data)) is not None:
        response["error_data"] = data
    return response | {key: value for key, value in error.extra.items() if value is not None}


def is_legacy(request: Request) -> bool:
    """Whether a request is generation A's: no id, and a prompt of chat messages or a shutdown."""
    if request.get("id") is not None:
        return False
    config = request.get("config")
    return request.get("operation") == "shutdown" or (
        isinstance(config, dict) and "messages" in config
    )


def turn(request: Request, result: Result, *, allow_empty: bool) -> Response:
    """The answer to a prompt. `allow_empty`: generation A's `allow_empty_tool_reply`."""
    if is_legacy(request):
        return _turn_a(request, result, allow_empty)
    if result.error is None:
        response: Response = {"id": request.get("id"), "ok": True}
    else:
        response = failure(request, result.error)
    response["result"] = _four(result)
    return response | _beside(result)


def turn_ended(message_ids: list[str], result: Result) -> Response:
    """The fields of a `turn` event for the end of a turn that has no request (`send`)."""
    fields: Response = {"state": "ended", "message_ids": message_ids}
    if result.error is not None:
        fields |= failure({"id": None}, result.error)
        del fields["id"], fields["ok"]
    return fields | {"result": _four(result) | _beside(result)}


def _four(result: Result) -> Response:
    return {
        "reply": result.reply,
        "stop_reason": result.stop_reason,
        "response_metadata": result.response_metadata,
        "update_metadata": result.update_metadata,
    }


def _beside(result: Result) -> Response:
    return {
        "turn": result.turn,
        "agent_stop_reason": result.agent_stop_reason,
        "outcome": result.outcome,
        "usage": result.usage,
        "truncated": result.outcome == "truncated" or result.limit is not None,
        **({} if result.limit is None else {"limit": result.limit}),
        **({} if result.model_errors is None else {"model_errors": result.model_errors}),
        **({"open_tool_calls": result.open_tool_calls} if result.open_tool_calls else {}),
    }


def _turn_a(request: Request, result: Result, allow_empty: bool) -> Response:
    if result.error is not None:
        return failure(request, result.error)
    finished = bool(result.tool_statuses) and all(
        status in ("completed", "failed") for status in result.tool_statuses
    )
    broken = result.outcome == "model_failed"
    if result.visible or (
        allow_empty and finished and result.stop_reason == "end_turn" and not broken
    ):
        return {"ok": True, "reply": result.reply}
    words = (
        "the agent's turn ended without visible text "
        f"(stop_reason={result.stop_reason}, tool_statuses={result.tool_statuses})"
    )
    if broken:
        words = f"{_model_words(result)}; {words}"
        return failure(request, BridgeError(words, code="model_upstream", origin="model"))
    return failure(request, BridgeError(words, code="agent_error", origin="agent"))


def _model_words(result: Result) -> str:
    """What the model said to the turn's last generation."""
    last = next(e for e in reversed(result.model_errors or []) if e["purpose"] == "turn")
    return f"the model answered {last['status']}: {last['error']}"


def cut(response: Response, words: str) -> Response:
    """What goes out in place of a response that no packet can hold: code `limit`, `words`, of a
    reply its beginning, of the rest what is short."""
    kept = short(response) | {"ok": False, "error": words, "code": "limit", "origin": "bridge"}
    reply = response.get("reply")
    if isinstance(reply, str):
        return kept | {"reply": reply[:CUT_REPLY]}
    result = codec.mapping(response.get("result")) or {}
    if "reply" not in result:
        return kept | {"result": None}
    four: Response = {"stop_reason": None, "response_metadata": {}, "update_metadata": []}
    return kept | {"result": {**four, **short(result), "reply": result["reply"][:CUT_REPLY]}}


def short(fields: Response) -> Response:
    """Of an object the members that cannot make a packet too large."""
    return {
        key: value
        for key, value in fields.items()
        if value is None or isinstance(value, int | float) or _is_short(value)
    }


def _is_short(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _SHORT
