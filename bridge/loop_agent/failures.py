"""The ways in which a request to the agent fails, as JSON-RPC errors.

Rule: the message is one line for people; `data.details`, where there is more to say, is what hosts
show in its place. Raised throughout `bridge.loop_agent`.
"""

from bridge.errors import RequestFailed
from bridge.wire import jsonrpc


def invalid_params(message: str) -> RequestFailed:
    return RequestFailed(jsonrpc.INVALID_PARAMS, message)


def invalid_request(message: str) -> RequestFailed:
    """The request is well formed but does not fit the state of things."""
    return RequestFailed(jsonrpc.INVALID_REQUEST, message)


def session_not_found(session_id: str) -> RequestFailed:
    return RequestFailed(
        jsonrpc.RESOURCE_NOT_FOUND, f"no session {session_id!r}", {"sessionId": session_id}
    )


def failed(message: str, details: str) -> RequestFailed:
    """Something the request depends on (the model, an MCP server, the disk) failed."""
    return RequestFailed(jsonrpc.INTERNAL_ERROR, message, {"details": details})
