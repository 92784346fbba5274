"""The tool gate of a harness: asked over HTTP before a tool call may run (HOST_PROTOCOL §3).

Rule: whatever goes wrong on the way denies; the words go to the log, the secret never does.
Called by `bridge.session.permissions` through the `Gate` that `gate_of` makes.
"""

from typing import Any

from bridge.session.permissions import Gate, Verdict
from protocol_schemas.host import ToolInterception


def gate_of(interception: ToolInterception | None) -> Gate | None:
    """The gate for a config's `tool_interception`."""
    if interception is None:
        return None

    async def ask(tool_call_id: str, arguments: Any) -> Verdict:
        return "deny"

    return ask
