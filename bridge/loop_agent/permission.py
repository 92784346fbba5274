"""Whether a tool may run: the mode, what was answered "always", or the user.

Rule: only an answer that selects one of the offered "allow" options allows; whatever else comes
back does not. Called by `bridge.loop_agent.turn`.
"""

from typing import Any, Literal

from bridge.errors import RequestFailed
from bridge.loop_agent.front import Front, Json
from bridge.loop_agent.session import Session
from bridge.rpc.connection import ConnectionEnded
from bridge.wire import codec
from protocol_schemas.session_file import Rule

Verdict = Literal["allow", "reject", "cancelled"]

_OPTIONS = [
    ("allow_once", "Allow once"),
    ("allow_always", "Allow always in this session"),
    ("reject_once", "Reject"),
    ("reject_always", "Reject always in this session"),
]
OPTIONS: list[Json] = [{"optionId": kind, "name": name, "kind": kind} for kind, name in _OPTIONS]


async def verdict(session: Session, front: Front, tool: str, tool_call: Json) -> Verdict:
    """Whether `tool` may do what `tool_call` (the ACP shape) says; asks if it has to."""
    state = session.state
    if state.mode == "auto":
        return "allow"
    if tool in state.rules:
        return "allow" if state.rules[tool] else "reject"
    try:
        answer = await front.ask(state.head.id, tool_call, OPTIONS)
    except RequestFailed:
        return "reject"
    except ConnectionEnded:
        return "cancelled"
    chosen = _chosen(answer)
    if chosen in ("allow_always", "reject_always"):
        session.record(Rule(tool, allow=chosen == "allow_always"))
    match chosen:
        case "allow_once" | "allow_always":
            return "allow"
        case "cancelled":
            return "cancelled"
        case _:
            return "reject"


def _chosen(answer: Any) -> str:
    """The option's id, `cancelled`, or something else for an answer that makes no sense."""
    outcome = codec.mapping((codec.mapping(answer) or {}).get("outcome")) or {}
    if outcome.get("outcome") == "selected":
        return str(outcome.get("optionId"))
    return str(outcome.get("outcome"))
