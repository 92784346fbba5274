"""The services a host may have us offer its agent: files, terminals, elicitation (ACP v1).

Owns: which are on, and the elicitations that wait for the host. Rule: what was not asked for is
not served (-32601), since an agent would use ours in place of its own tools; an elicitation that
nobody can answer is declined. Used by `bridge.session.session`.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import anyio

from bridge.errors import invalid_request
from bridge.rpc.connection import Connection
from bridge.rpc.inbound import Answer, Inbound
from bridge.wire import jsonrpc
from bridge.wire.jsonrpc import Request

if TYPE_CHECKING:
    from bridge.agent.terminals import Terminals

_DECLINED = {"action": "decline"}
_CANCELLED = {"action": "cancel"}


class Services:
    """What one session's agent may call."""

    def __init__(
        self, wants: Callable[[str], bool], event: Callable[[str, dict[str, Any]], None]
    ) -> None:
        self._wants = wants
        self._event = event
        self.stopping = False
        """Between a turn's stop and its end."""
        self._enabled: frozenset[str] = frozenset()
        self._make_terminals: Callable[[], Terminals] | None = None
        self._terminals: Terminals | None = None
        self._elicitations: dict[str, tuple[anyio.Event, list[dict[str, Any]]]] = {}
        self._count = 0

    def enable(self, names: Sequence[str], terminals: "Callable[[], Terminals]") -> None:
        """Sets what is served: any of fs, terminal, elicitation. `terminals` makes the service."""
        self._enabled = frozenset(names)
        self._make_terminals, self._terminals = terminals, None

    def take(self, request: Request, connection: Connection, inbound: Inbound) -> None:
        """Answers a request that is not for permission."""
        if request.method == "elicitation/create":
            self._take_elicitation(request, connection, inbound)
            return
        answer = self._answer_of(request.method)
        if answer is None:
            words = f"method not found: {request.method} (the client did not advertise it)"
            connection.fail(request.id, jsonrpc.METHOD_NOT_FOUND, words)
        else:
            inbound.start(request, answer)

    def _answer_of(self, method: str) -> Answer | None:
        """Loads a service when it is first called: most agents use their own tools."""
        if method.startswith("fs/") and "fs" in self._enabled:
            from bridge.agent.files import Files

            return Files().answer
        if method.startswith("terminal/") and "terminal" in self._enabled:
            if self._terminals is None and self._make_terminals is not None:
                self._terminals = self._make_terminals()
            return None if self._terminals is None else self._terminals.answer
        return None

    async def release(self) -> None:
        """Ends the terminals that are left: no more are made until `enable`."""
        self._make_terminals = None
        if self._terminals is not None:
            await self._terminals.release_all()

    @property
    def waiting(self) -> bool:
        """Whether an elicitation waits for the host, and the agent with it."""
        return bool(self._elicitations)

    def _take_elicitation(self, request: Request, connection: Connection, inbound: Inbound) -> None:
        if "elicitation" not in self._enabled or not self._wants("elicitation"):
            connection.reply(request.id, _DECLINED)
            return
        if self.stopping:
            connection.reply(request.id, _CANCELLED)
            return
        if inbound.refuses(request):
            return
        self._count += 1
        key = f"elicitation-{self._count}"
        self._elicitations[key] = anyio.Event(), []
        # Told at once: an update that follows on the wire follows as an event, too.
        self._event("elicitation", {"request_id": key, "params": request.params})
        inbound.start(request, lambda _method, _params: self._elicited(key))

    async def _elicited(self, key: str) -> dict[str, Any]:
        answered, answer = self._elicitations[key]
        try:
            await answered.wait()
        finally:
            del self._elicitations[key]
        return answer[0]

    def cancel_all(self) -> None:
        """The turn is being stopped: what waits for the host is answered `cancel`, and so is what
        comes until `stopping` is reset."""
        self.stopping = True
        for key, (answered, _) in list(self._elicitations.items()):
            if not answered.is_set():
                self.answer_elicitation(key, "cancel", None)

    def answer_elicitation(
        self, request_id: str, action: str, content: dict[str, Any] | None
    ) -> None:
        """The host's answer; raises BridgeError(invalid_request) if nobody waits for it."""
        waiting = self._elicitations.get(request_id)
        if waiting is None or waiting[0].is_set():
            raise invalid_request(f"no elicitation {request_id!r} is open")
        answered, answer = waiting
        answer.append({"action": action} | ({} if content is None else {"content": content}))
        answered.set()
