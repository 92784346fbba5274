"""The active relay: as the transparent one, but for the messages that it is there to change.

Owns: which lines those are. Rules: addresses are put behind our proxies in place (`Behind`); a
permission request is answered here where there is a policy, and its client
never hears of it, nor of its cancellation; everything else passes as it came, line by line, in
order. The relay has no requests of its own, so ids stay as they are on both sides.
Used by `bridge.cli.acp` when it is given --mcp-proxy, --model-proxy or --policy.
"""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from bridge.agent.behind import Behind
from bridge.agent.relay import Relay
from bridge.io.pipes import FdReader, FdWriter
from bridge.io.process import Process
from bridge.rpc.connection import LINE_CEILING, Tap
from bridge.rules import permission
from bridge.wire import codec, jsonrpc
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Notification, Request, Response
from bridge.wire.lines import LineFramer
from protocol_schemas.acp import PermissionOption

Policy = Literal["allow", "deny"]
Note = Callable[[str, dict[str, Any]], None]
"""Takes down a decision: its kind, and what is to be said of it."""

_PERMISSION = "session/request_permission"
_CANCEL = "$/cancel_request"


class Question(msgspec.Struct, rename="camel"):
    """A permission request of either version, as far as a policy has to know it."""

    options: list[PermissionOption]
    tool_call: dict[str, Any] = {}
    session_id: str | None = None
    title: Any = None
    subject: Any = None
    """Version 2: what is asked about; a tool call among others."""

    def answered(
        self, ident: bytes, policy: Policy, stopped: "Stopped", note: Note | None
    ) -> dict[str, Any]:
        """The policy's answer to the request of that id, in a stopped turn `cancelled`; it is
        taken down."""
        stop = self.session_id in stopped.sessions
        result = permission.outcome(None if stop else permission.choose(self.options, policy))
        if note is not None:
            subject = codec.mapping(self.subject) or {}
            call = codec.mapping(subject.get("toolCall")) or {"toolCallId": None} | self.tool_call
            call = call | {"title": self.title or call.get("title")}
            request = codec.decode(ident)
            by = "stop" if stop else "policy"
            note("permission", permission.decision(request, call, self.options, result, by))
        return result


class Stopped:
    """The sessions whose turn their client has cancelled, and not begun another."""

    def __init__(self) -> None:
        self.sessions: set[str | None] = set()

    def see(self, method: str, params: Raw) -> None:
        """What the client calls."""
        if method not in ("session/cancel", "session/prompt"):
            return
        session = (codec.mapping(codec.decode(params)) or {}).get("sessionId")
        if not isinstance(session, str):
            return
        if method == "session/prompt":
            self.sessions.discard(session)
        else:
            self.sessions.add(session)


class ActiveRelay(Relay):
    """One client and one agent, with something in between. `tap` sees the agent's pipes,
    `client_tap` the client's."""

    def __init__(
        self,
        process: Process,
        reader: FdReader,
        writer: FdWriter,
        tap: Tap | None,
        *,
        client_tap: Tap | None,
        behind: Behind,
        policy: Policy | None,
        note: Note | None,
    ) -> None:
        super().__init__(process, reader, writer, tap)
        self._client_tap = client_tap
        self._behind = behind
        self._policy: Policy | None = policy
        self._note = note
        self._initializing: bytes | None = None
        self._stopped = Stopped()
        self._answered: set[bytes] = set()
        """The agent's requests that were answered here."""

    async def _to_agent(self) -> None:
        framer, stdin = LineFramer(LINE_CEILING), self._stdin
        while data := await self._reader.receive():
            if self._client_tap is not None:
                self._client_tap("in", data)
            for line in framer.feed(data):
                self._tell(await self._from_client(line) + b"\n")
            await stdin.drained()
            if stdin.broken:
                self._reader.close()
                return
        if rest := framer.end():
            self._tell(rest)
            await stdin.drained()
        self._stdin.close()
        self._leave()

    async def _to_client(self) -> None:
        framer, writer = LineFramer(LINE_CEILING), self._writer
        while data := await self._process.stdout.receive():
            if self._tap is not None:
                self._tap("in", data)
            for line in framer.feed(data):
                if self._passes(line):
                    self._show(line + b"\n")
            await writer.drained()
            self._passed += len(data)
        if rest := framer.end():
            self._show(rest)

    def _tell(self, line: bytes) -> None:
        if self._tap is not None:
            self._tap("out", line)
        self._stdin.post(line)

    def _show(self, line: bytes) -> None:
        if self._client_tap is not None:
            self._client_tap("out", line)
        self._writer.post(line)

    async def _from_client(self, line: bytes) -> bytes:
        """The line for the agent."""
        message = jsonrpc.parse(line)
        if isinstance(message, Request) and message.method == "initialize":
            self._initializing = message.id
        if isinstance(message, Request | Notification):
            self._stopped.see(message.method, message.params)
        return await self._behind.changed(line)

    def _passes(self, line: bytes) -> bool:
        """Whether the client gets the line."""
        message = jsonrpc.parse(line)
        if isinstance(message, Response) and message.id == self._initializing:
            self._behind.initialized(message.result)
            self._initializing = None
        elif isinstance(message, Request):
            # An agent may use an id again, for what its client is to answer.
            self._answered.discard(plain(message.id))
            wanted = message.method == _PERMISSION and self._policy is not None
            return not (wanted and self._decide(message))
        elif isinstance(message, Notification) and message.method == _CANCEL:
            params = codec.mapping(codec.decode(message.params)) or {}
            return codec.encode(params.get("requestId")) not in self._answered
        return True

    def _decide(self, request: Request) -> bool:
        """Answers a permission request; False if it cannot be read, and is the client's."""
        try:
            question = codec.decode_as(request.params, Question)
        except codec.JSONError:
            return False
        policy = self._policy or "deny"
        result = question.answered(request.id, policy, self._stopped, self._note)
        self._answered.add(plain(request.id))
        self._tell(jsonrpc.result(request.id, result))
        return True


def plain(ident: bytes) -> bytes:
    """An id as we write it, however its peer has spelt it."""
    return codec.encode(codec.decode(ident))
