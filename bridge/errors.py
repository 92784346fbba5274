"""The errors the daemon reports, with the codes and origins of HOST_PROTOCOL §4.

Rule: whatever goes wrong reaches the host as a BridgeError; everything else is a bug and is
reported as `internal`. Raised everywhere, turned into packets by `bridge.session`.
"""

from collections.abc import Iterable
from typing import Any, Literal

Code = Literal[
    "agent_error",
    "agent_exited",
    "spawn_failed",
    "timeout",
    "cancelled",
    "session_not_found",
    "unsupported",
    "invalid_request",
    "auth_required",
    "mcp_failed",
    "outcome_unknown",
    "model_upstream",
    "limit",
    "protocol",
    "internal",
]
Origin = Literal["host", "agent", "mcp", "model", "bridge"]


class BridgeError(Exception):
    """A failure with words for people and a code for programs.

    `data` is the JSON-RPC error's own `data` (given to the host as `error_data`); `extra` holds
    the further response fields (`agent_code`, `exit_code`, `signal`, `stderr`, ...).
    """

    def __init__(
        self,
        message: str,
        *,
        code: Code = "internal",
        origin: Origin = "bridge",
        data: Any = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code: Code = code
        self.origin: Origin = origin
        self.data = data
        self.extra = extra or {}


class RequestFailed(Exception):
    """A JSON-RPC error, got from a peer or to be given to one (JSON-RPC 2.0 §5.1)."""

    def __init__(self, code: int | None, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class UsageError(Exception):
    """The command line or a file it names is wrong: one line on stderr, exit code 2."""


def first_of(failure: BaseException) -> BaseException:
    """The failure, or the first one in a group of groups."""
    while inner := getattr(failure, "exceptions", None):
        failure = inner[0]
    return failure


def meant(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` of the known name that is nearest, "" if none is near."""
    import difflib  # only where something is wrong already

    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f"; did you mean {near[0]!r}?" if near else ""


def invalid_request(message: str) -> BridgeError:
    """The host's request cannot be carried out as it stands."""
    return BridgeError(message, code="invalid_request", origin="host")


def unsupported(message: str) -> BridgeError:
    """The agent (or this daemon) lacks what the request needs."""
    return BridgeError(message, code="unsupported", origin="agent")
