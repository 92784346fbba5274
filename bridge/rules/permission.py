"""Which option answers a `session/request_permission`: chosen by `kind`, never by id or place.

Pure; called by `bridge.session.permissions` and, where a policy answers for the client, by the
relay and the component of a chain. Agents name their options as they like and some list
allow_always first (gemini, qwen), so neither position nor name says anything.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from protocol_schemas.acp import PermissionOption

Decision = Literal["allow", "deny", "cancel"]

_KINDS: dict[Decision, tuple[str, ...]] = {
    "allow": ("allow_once", "allow_always"),
    "deny": ("reject_once", "reject_always"),
    "cancel": (),
}


def choose(options: Sequence[PermissionOption], decision: Decision) -> Any:
    """The optionId of the narrowest offered option that carries out `decision`, or None."""
    for kind in _KINDS[decision]:
        for option in options:
            if option.kind == kind:
                return option.option_id
    return None


def outcome(option_id: Any) -> dict[str, Any]:
    """The result of `session/request_permission`; None is the outcome `cancelled`."""
    if option_id is None:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


def decision(
    request: Any,
    call: Mapping[str, Any],
    options: Sequence[PermissionOption],
    result: dict[str, Any],
    by: str,
    seconds: float = 0.0,
) -> dict[str, Any]:
    """What a trace tells of a settled request: its id, what was offered, what was chosen (None:
    `cancelled`), by whom, and how long that took (docs/trace-format.md)."""
    return {
        "request": request,
        "tool_call": call.get("toolCallId"),
        "title": call.get("title"),
        "options": [{"optionId": o.option_id, "kind": o.kind} for o in options],
        "option": result["outcome"].get("optionId"),
        "by": by,
        "seconds": round(seconds, 6),
    }
