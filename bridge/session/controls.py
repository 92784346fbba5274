"""The operations that act on an open session beside its turns: steer, send, modes, options, lists.

Rules: what the agent did not advertise is refused by name before anything is sent; its answers go
to the host as they are; one that does not come in time is taken back, and the session goes on.
Called by `bridge.session.operations`.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from bridge.agent.supervisor import Agent
from bridge.errors import BridgeError, invalid_request, unsupported
from bridge.host.requests import fields_of
from bridge.session import delivery, translate
from bridge.session.faults import failures
from bridge.session.jobs import Block
from bridge.session.session import Session
from bridge.wire import codec, jsonrpc
from protocol_schemas import host as shapes

TIMEOUT = 60.0
"""Seconds that an agent has for its answer, unless its session has a `start_timeout`."""
LOGIN_TIMEOUT = 600.0
"""The same for `authenticate`, where a person may have to do something."""
NO_TURN = {"outcome": "promptRequired", "reason": "noRunningTurn"}
_STEERING = "_session/steering"

Waits = Callable[[], Awaitable[Any]]
"""What was sent to the agent; await it for the answer."""


def steer(session: Session, blocks: list[Block], message_id: str | None) -> dict[str, Any] | Waits:
    """Brings a message into the running turn; the agent's receipt. Before there is a session the
    receipt is NO_TURN; an idle session's steer goes to the agent, which says the same."""
    if session.state in ("new", "opening"):
        return dict(NO_TURN)
    agent = session.living()
    meta = agent.client.initialized.meta if agent.client.initialized else None
    steering = codec.mapping((meta or {}).get("steering")) or {}
    if steering.get("supported") is not True:
        raise unsupported("the agent does not support steering: it did not advertise it")
    translate.check_blocks(blocks, agent.client.capabilities)
    params: dict[str, Any] = {
        "sessionId": session.session_id,
        "prompt": blocks,
        "_meta": {"steering": {"idleBehavior": "promptRequired"}},
    }
    if message_id is not None:
        params["messageId"] = message_id
    return _request(session, agent, _STEERING, params, lambda result: codec.mapping(result) or {})


def send(session: Session, fields: shapes.Send) -> dict[str, Any] | Waits:
    """Accepts a message for the running turn (steer) or for one of its own (queue)."""
    agent = session.living()
    blocks = translate.message_blocks(fields.message)
    translate.check_blocks(blocks, agent.client.capabilities)
    ident, new = session.mailbox.accept(blocks, fields.message_id, fields.mode)
    receipt = {"outcome": "accepted", "message_id": ident}
    if not new:
        return receipt
    if fields.mode == "queue":
        delivery.post(session, ident, blocks)
        return receipt
    return _send_now(session, blocks, receipt)


def _send_now(session: Session, blocks: list[Block], receipt: dict[str, Any]) -> Waits:
    """A message into the running turn; where there is none, it was not accepted."""
    ident = receipt["message_id"]
    try:
        steered = steer(session, blocks, ident)
    except BaseException:
        session.mailbox.retract(ident)
        raise

    async def accepted() -> dict[str, Any]:
        try:
            answer = await steered() if callable(steered) else steered
        except BaseException:
            session.mailbox.retract(ident)
            raise
        if answer.get("outcome") == "promptRequired":
            session.mailbox.retract(ident)
            return {**answer, "message_id": ident}
        return receipt

    return accepted


def _set_mode(session: Session, request: dict[str, Any]) -> Waits:
    fields = fields_of(request, shapes.SetMode)
    return _request(
        session,
        session.living(),
        "session/set_mode",
        {"sessionId": session.session_id, "modeId": fields.mode_id},
        lambda _: {},
    )


def _set_config_option(session: Session, request: dict[str, Any]) -> Waits:
    fields = fields_of(request, shapes.SetConfigOption)
    params: dict[str, Any] = {
        "sessionId": session.session_id,
        "configId": fields.config_id,
        "value": fields.value,
    }
    if isinstance(fields.value, bool):
        params["type"] = "boolean"
    return _request(session, session.living(), "session/set_config_option", params)


def _list_sessions(session: Session, request: dict[str, Any]) -> Waits:
    fields = fields_of(request, shapes.ListSessions)
    agent = _able(session, "list")
    given = {"cwd": fields.cwd, "cursor": fields.cursor}
    params = {key: value for key, value in given.items() if value is not None}
    return _request(session, agent, "session/list", params)


def _delete_session(session: Session, request: dict[str, Any]) -> Waits:
    fields = fields_of(request, shapes.DeleteSession)
    agent = _able(session, "delete")
    answered = _request(session, agent, "session/delete", {"sessionId": fields.session_id})

    async def deleted() -> Any:
        try:
            return await answered()
        except BridgeError as error:
            if error.extra.get("agent_code") == jsonrpc.RESOURCE_NOT_FOUND:
                # It is not there: what was asked for.
                return {}
            raise

    return deleted


def _authenticate(session: Session, request: dict[str, Any]) -> Waits:
    fields = fields_of(request, shapes.Authenticate)
    agent = session.agent
    if agent is None or agent.death is not None:
        raise invalid_request(f"session {session.name!r} has no running agent: open it first")
    offered = (agent.client.initialized and agent.client.initialized.auth_methods) or []
    known = [method.get("id") for method in offered]
    if fields.method_id not in known:
        raise invalid_request(
            f"auth method {fields.method_id!r} is not offered; these are: {known}"
        )
    params = {"methodId": fields.method_id}
    return _request(session, agent, "authenticate", params, lambda _: {}, LOGIN_TIMEOUT)


def _cancel_tool_call(session: Session, request: dict[str, Any]) -> Waits:
    ident = fields_of(request, shapes.CancelToolCall).tool_call_id
    return _cancel_one(session, "tool_call", {"toolCallId": ident}, ident)


def _cancel_terminal(session: Session, request: dict[str, Any]) -> Waits:
    ident = fields_of(request, shapes.CancelTerminal).terminal_id
    return _cancel_one(session, "terminal", {"terminalId": ident}, ident)


def _cancel_one(session: Session, kind: str, params: dict[str, Any], ident: str) -> Waits:
    """ACP version 2: the end of a single call or terminal, while it says that it can be ended."""
    agent, session_id = session.living(), session.session_id or ""
    if not agent.client.dialect.cancellable(session_id, kind, ident):
        raise unsupported(f"{kind} {ident!r} does not say that it can be cancelled by itself")
    params = {"sessionId": session_id, **params}
    return _request(session, agent, f"{kind}/cancel", params, lambda _: {})


_TABLE = {
    "set_mode": _set_mode,
    "set_config_option": _set_config_option,
    "list_sessions": _list_sessions,
    "delete_session": _delete_session,
    "authenticate": _authenticate,
    "cancel_tool_call": _cancel_tool_call,
    "cancel_terminal": _cancel_terminal,
}
NAMES = tuple(_TABLE)


def ask(session: Session, operation: str, request: dict[str, Any]) -> Waits:
    """Carries out one of NAMES; the agent's answer, where it has one of its own."""
    return _TABLE[operation](session, request)


def _able(session: Session, capability: str) -> Agent:
    agent = session.living()
    if not agent.client.capabilities.session(capability):
        raise unsupported(f"the agent does not support session/{capability}: not advertised")
    return agent


def _request(
    session: Session,
    agent: Agent,
    method: str,
    params: dict[str, Any],
    shape: Callable[[Any], Any] | None = None,
    seconds: float = TIMEOUT,
) -> Waits:
    """Sends a request at once; `shape` makes the operation's result of the agent's."""
    pending = agent.client.start(method, params)
    given = session.config.start_timeout
    limit = seconds if given is None else given

    async def answered() -> Any:
        with anyio.move_on_after(limit), failures(agent, method):
            result = agent.client.read(method, params, await pending.result())
            return result if shape is None else shape(result)
        raise BridgeError(
            f"the agent did not answer {method} within {limit:g} s; it was taken back",
            code="timeout",
            origin="agent",
        )

    return answered
