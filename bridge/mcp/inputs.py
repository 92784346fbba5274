"""`input_required` answers of modern servers, for callers that can only be asked by requests.

Rule: `requestState` goes back byte for byte; what the caller refuses ends the call with the
caller's own error. Source: MCP 2026-07-28, "Multi round-trip requests". Called by
`bridge.mcp.call`.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from bridge.mcp import messages
from bridge.mcp.messages import Answer
from bridge.wire import codec
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Request

Ask = Callable[[Request], Awaitable[Answer]]


def required(answer: Answer) -> bool:
    """Whether the server wants to be told more before it answers."""
    if answer.result is None or b"input_required" not in bytes(answer.result):
        return False
    kind = (messages.members(answer.result) or {}).get("resultType")
    return kind is not None and codec.decode(kind) == "input_required"


async def gathered(answer: Answer, ask: Ask) -> dict[str, Any] | Answer:
    """The parameters to send the request again with, once the caller was asked for each input;
    or the error with which the caller refused one."""
    fields = messages.members(answer.result or b"{}") or {}
    responses: dict[str, Any] = {}
    wanted = messages.members(fields["inputRequests"]) if "inputRequests" in fields else None
    for name, raw in (wanted or {}).items():
        question = messages.members(raw) or {}
        method = codec.decode(question["method"]) if "method" in question else ""
        given = await ask(Request(b"", str(method), question.get("params", Raw(b"{}")), b""))
        if given.error is not None:
            return given
        responses[name] = given.result
    more: dict[str, Any] = {"inputResponses": responses}
    if "requestState" in fields:
        more["requestState"] = fields["requestState"]
    return more
