"""Answers to `session/request_permission`: by the gate, by the policy, or by the host.

Owns: the requests that are open. Rules: each is answered exactly once, with an option chosen by
kind; a turn that is being stopped answers them all `cancelled`, as ACP asks of a client; a gate
that cannot be reached or read denies, and `stop` ends the turn; who decided what is told to the
recorder. Used by `bridge.session.session`.
"""

import time
from collections.abc import Callable
from typing import Any, Literal

import anyio
import msgspec

from bridge.errors import invalid_request
from bridge.log import log
from bridge.rpc.connection import Connection
from bridge.rpc.inbound import Inbound
from bridge.rules import permission
from bridge.rules.permission import Decision
from bridge.session.gate import Gate
from bridge.wire import codec, jsonrpc
from bridge.wire.jsonrpc import Request
from protocol_schemas.acp import PermissionParams
from protocol_schemas.host import SelectedOption, ToolInterception

HOST_TIMEOUT = 120.0
"""Seconds a host has to answer a permission event (HOST_PROTOCOL §4)."""

Policy = Literal["allow", "deny", "ask"]
Decider = Literal["policy", "host", "gate", "timeout", "stop", "withdrawn"]
"""Who settled a request; `withdrawn`: the agent took it back, or went."""
Note = Callable[[str, dict[str, Any]], None]
"""Takes down a decision: its kind, and what is to be said of it."""


class Permissions:
    """One session's permission requests."""

    def __init__(
        self,
        *,
        ask_host: Callable[[dict[str, Any]], None],
        stop: Callable[[], None],
        note: Note | None = None,
    ) -> None:
        self.policy: Policy = "allow"
        self.gate: Gate | None = None
        self.stopping = False
        """Between a turn's stop and its end: everything is answered `cancelled`."""
        self._ask_host = ask_host
        self._stop = stop
        self._note = note
        self._count = 0
        self._asked: dict[str, _Asked] = {}

    @property
    def waiting(self) -> bool:
        """Whether a request waits for the gate or the host, and the agent with it."""
        return bool(self._asked)

    def take(self, request: Request, connection: Connection, inbound: Inbound) -> None:
        """Answers at once where the policy decides, else in a task of `inbound`."""
        try:
            params = codec.decode_as(request.params, PermissionParams)
        except codec.JSONError as error:
            connection.fail(request.id, jsonrpc.INVALID_PARAMS, f"{request.method}: {error}")
            return
        if self.stopping:
            self._settle(request, params, connection, permission.outcome(None), "stop")
        elif inbound.refuses(request):
            return
        elif self.gate is not None:
            gate, asked = self.gate, _Asked(request.id, params)
            key = self._enter(asked)
            inbound.start(request, lambda _method, _params: self._ask_gate(gate, key, asked))
        elif self.policy == "ask":
            asked = _Asked(request.id, params)
            key = self._enter(asked)
            # Told at once: an update that follows on the wire follows as an event, too.
            offer = codec.decode_as(request.params, _Offer)
            fields = {"request_id": key, "tool_call": params.tool_call, "options": offer.options}
            if offer.original is not None:
                fields["original"] = offer.original
            self._ask_host(fields)
            inbound.start(request, lambda _method, _params: self._ask(key, asked))
        else:
            self._settle(request, params, connection, _answer(params, self.policy), "policy")

    def _settle(
        self,
        request: Request,
        params: PermissionParams,
        connection: Connection,
        result: dict[str, Any],
        by: Decider,
    ) -> None:
        """Answers at once."""
        connection.reply(request.id, result)
        if self._note is not None:
            ident = codec.decode(request.id)
            said = permission.decision(ident, params.tool_call, params.options, result, by)
            self._note("permission", said)

    def _leave(self, key: str, asked: "_Asked") -> None:
        """A request that waited is settled."""
        del self._asked[key]
        if self._note is not None:
            withdrawn = asked.by == "withdrawn"
            result = permission.outcome(None) if withdrawn else asked.result
            ident, seconds = codec.decode(asked.ident), time.monotonic() - asked.since
            call, options = asked.params.tool_call, asked.params.options
            said = permission.decision(ident, call, options, result, asked.by, seconds)
            self._note("permission", said)

    async def _ask_gate(self, gate: Gate, key: str, asked: "_Asked") -> dict[str, Any]:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._put_to_gate, gate, asked)
                await asked.decided.wait()
                tasks.cancel_scope.cancel()
        finally:
            self._leave(key, asked)
        return asked.result

    async def _put_to_gate(self, gate: Gate, asked: "_Asked") -> None:
        call = gate_call(asked.params.tool_call)
        verdict = "deny" if call is None else await gate.verdict(*call)
        if verdict == "stop":
            asked.decide(permission.outcome(None), "gate")
            self._stop()
        else:
            asked.decide(_answer(asked.params, verdict), "gate")

    async def _ask(self, key: str, asked: "_Asked") -> dict[str, Any]:
        try:
            with anyio.move_on_after(HOST_TIMEOUT) as waiting:
                await asked.decided.wait()
            if waiting.cancelled_caught:
                asked.decide(asked.result, "timeout")
        finally:
            self._leave(key, asked)
        return asked.result

    def set_gate(self, interception: ToolInterception | None) -> None:
        """Asks the gate at that address from now on, or none."""
        if self.gate is None or self.gate.interception != interception:
            if self.gate is not None:
                self.gate.close()
            self.gate = None if interception is None else Gate(interception, self._note)

    def _enter(self, asked: "_Asked") -> str:
        self._count += 1
        key = f"permission-{self._count}"
        self._asked[key] = asked
        return key

    def answer(self, request_id: str, outcome: SelectedOption | Decision) -> None:
        """The host's answer; raises BridgeError(invalid_request) for one that fits nothing."""
        asked = self._asked.get(request_id)
        if asked is None or asked.decided.is_set():
            raise invalid_request(f"no permission request {request_id!r} is open")
        if isinstance(outcome, SelectedOption):
            offered = [option.option_id for option in asked.params.options]
            if outcome.option_id not in offered:
                raise invalid_request(
                    f"option {outcome.option_id!r} was not offered; these were: {offered}"
                )
            asked.decide(permission.outcome(outcome.option_id), "host")
        else:
            asked.decide(_answer(asked.params, outcome), "host")

    def cancel_all(self) -> None:
        """Answers everything open `cancelled`, and so what comes until `stopping` is reset."""
        self.stopping = True
        for asked in self._asked.values():
            asked.decide(permission.outcome(None), "stop")


class _Offer(msgspec.Struct):
    """The options as the agent sent them, for the host; and all of its params, where these are
    version 2's in other terms."""

    options: list[dict[str, Any]]
    original: dict[str, Any] | None = None


class _Asked:
    """A request that waits for an answer; undecided, it is denied."""

    def __init__(self, ident: bytes, params: PermissionParams) -> None:
        self.ident = ident
        self.params = params
        self.result = _answer(params, "deny")
        self.by: Decider = "withdrawn"
        self.since = time.monotonic()
        self.decided = anyio.Event()

    def decide(self, result: dict[str, Any], by: Decider) -> None:
        if not self.decided.is_set():
            self.result, self.by = result, by
            self.decided.set()


def _answer(params: PermissionParams, decision: Decision) -> dict[str, Any]:
    return permission.outcome(permission.choose(params.options, decision))


def gate_call(tool_call: dict[str, Any]) -> tuple[str, Any] | None:
    """The id and arguments a gate is asked about; None if they cannot be read.

    pi-acp wraps its extensions' confirmations in a permission request of their own: the id begins
    with `pi-ui-`, the real call's id is `title`, its arguments are JSON text in `message`.
    """
    ident, arguments = str(tool_call.get("toolCallId", "")), tool_call.get("rawInput")
    wrapped = codec.mapping(arguments)
    if ident.startswith("pi-ui-") and wrapped is not None and wrapped.get("method") == "confirm":
        title, message = wrapped.get("title"), wrapped.get("message")
        if not isinstance(title, str) or not isinstance(message, str):
            return None
        try:
            return title, codec.decode(message.encode())
        except (codec.JSONError, UnicodeEncodeError) as error:
            log.warning("the tool call in %s cannot be read, so it is denied: %s", ident, error)
            return None
    return ident, arguments
