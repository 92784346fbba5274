"""What went wrong with an agent, in the host's terms (HOST_PROTOCOL §4, errors).

Rule: the words are the agent's own (`data.details` if there is one, else the message), its code
and data stay beside them. Used wherever the session layer calls an agent.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from bridge.agent.supervisor import Agent
from bridge.errors import BridgeError, RequestFailed
from bridge.rpc.connection import ConnectionEnded
from bridge.wire import codec, jsonrpc


@contextmanager
def failures(agent: Agent, what: str) -> Generator[None]:
    """Turns what a call to the agent (`what`: its method) raises into a BridgeError."""
    try:
        yield
    except RequestFailed as error:
        raise agent_error(error, agent) from error
    except ConnectionEnded as error:
        raise death(agent, str(error)) from error
    except codec.JSONError as error:
        raise BridgeError(
            f"the agent's answer to {what} cannot be read: {error}", code="protocol", origin="agent"
        ) from error


def death(agent: Agent, words: str) -> BridgeError:
    """Why the agent is gone, as an error of its own for each request that it left open."""
    cause = agent.death or BridgeError(words, code="agent_exited", origin="agent")
    return BridgeError(cause.message, code=cause.code, origin=cause.origin, extra=cause.extra)


def agent_error(error: RequestFailed, agent: Agent) -> BridgeError:
    """An agent's JSON-RPC error; -32000 is `auth_required` and lists the ways to authenticate."""
    details = (codec.mapping(error.data) or {}).get("details")
    words = details if isinstance(details, str) and details else error.message
    extra: dict[str, Any] = {"agent_code": error.code}
    if error.code == jsonrpc.AUTH_REQUIRED:
        initialized = agent.client.initialized
        extra["auth_methods"] = (initialized and initialized.auth_methods) or []
        return BridgeError(
            words, code="auth_required", origin="agent", data=error.data, extra=extra
        )
    return BridgeError(words, code="agent_error", origin="agent", data=error.data, extra=extra)
