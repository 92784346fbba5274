"""One session of a version 2 agent, for whoever thinks in version 1: the `Sink` between the two.

Owns: what must be remembered of a session to tell of it in version 1's terms: its foreground, its
messages, its calls. Rules: an update goes on as it came where version 1 has the same; what an
earlier turn still says is told as late; a turn's end is delivered as the answer to its prompt, in
wire order, behind its last update. Sans-IO: it is called by the connection's reader. Made by
`bridge.agent.v2.dialect`.
"""

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

from bridge.agent import updates
from bridge.agent.updates import Incoming
from bridge.agent.v2 import patches, shapes
from bridge.agent.v2.foreground import Foreground, Step
from bridge.agent.v2.patches import Members
from bridge.agent.v2.tools import Tools
from bridge.rpc.connection import Settle
from bridge.wire import codec
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Fault, Notification, Request, Response
from protocol_schemas.acp import Update, UpdateParams

if TYPE_CHECKING:
    from bridge.agent.client import SessionSink

DOUBT = 2.0
"""Seconds for which an `idle` that may be of other work is waited on for a contradiction."""
KEPT_IDS = 10_000
"""Messages and calls of earlier turns that are known by their ids; beyond, the oldest go."""

_CHUNK_OF = {
    "user_message": "user_message_chunk",
    "agent_message": "agent_message_chunk",
    "agent_thought": "agent_thought_chunk",
}
_CHUNKS = frozenset(_CHUNK_OF.values())
_STATED = ("stopReason", "usage", "_meta")
"""What an idle state says of the turn that it ends, as version 1's answer to the prompt does."""

Later = Callable[[float, Callable[[], None]], None]
"""Calls something after so many seconds, if the agent lives."""


class Translated(Incoming, gc=False):
    """An update in version 1's terms; `source`: the original, where it says more."""

    source: Raw | None = None

    def original(self) -> Raw | None:
        return self.source


class Interpreter:
    """A `bridge.agent.client.Sink` before the session's own."""

    def __init__(self, inner: "SessionSink", later: Later, adopt: Callable[[str], None]) -> None:
        """`adopt`: takes the id of a child session that is announced."""
        self.name = inner.name
        self.modes = shapes.Modes()
        self.tools = Tools()
        self._inner = inner
        self._later = later
        self._adopt = adopt
        self._work = Foreground()
        self._settle: Settle | None = None
        self._doubt: Response | None = None
        self._epoch = 0
        """Turns and the times between them, counted."""
        self._seen: dict[str, int] = {}
        """The messages and calls, and when each was first heard of."""
        self._filled: dict[str, set[str]] = {kind: set() for kind in (*_CHUNK_OF, *_CHUNKS)}
        for whole, chunk in _CHUNK_OF.items():
            self._filled[chunk] = self._filled[whole]
        self._acceptance: dict[str, Any] = {}
        """The `_meta` of the prompt's response."""
        self._kinds: dict[str, Callable[[Incoming, Members], None]] = {
            **dict.fromkeys(_CHUNK_OF, self._message),
            "state_update": self._state,
            "tool_call_update": self._tool,
            "tool_call_content_chunk": self._tool_chunk,
            "terminal_update": self._terminal,
            "plan_update": self._plan,
            "config_option_update": self._options,
            "subagent_update": self._subagent,
        }

    # what the client does

    def prompt(self, send: Callable[[Settle], object], settle: Settle) -> None:
        """Begins a turn: `send` sends the prompt, `settle` gets its end. Raises as `send` does."""
        self._settle, self._acceptance = settle, {}
        self._work.sent()
        self._turn_over()
        try:
            send(lambda response: self._answered(response, settle))
        except codec.JSONError:
            self._settle = None
            self._work.over()
            raise

    def cancel(self) -> None:
        """`session/cancel` was sent."""
        self._act(self._work.cancelled())

    def opened(self) -> None:
        """The response that opens the session has passed."""
        self._turn_over()
        self._act(self._work.open())

    def end(self, reason: str) -> None:
        """The connection has ended: a turn that waits for its state gets its end."""
        self._finish(Response(b"", patches.NULL, Fault(None, reason), b""))

    # what the agent sends (bridge.agent.client.Sink)

    def update(self, incoming: Incoming) -> None:
        update = incoming.params.update
        kind = update.kind
        if kind in _CHUNKS:
            if kind == "user_message_chunk":
                self._act(self._work.echoed())
            if (ident := update.message_id) is not None:
                self._filled[kind].add(ident)
            self._pass(incoming, ident)
        elif (act := self._kinds.get(kind)) is not None:
            try:
                change = patches.members(incoming.raw())
            except codec.JSONError:
                self._pass(incoming)
            else:
                act(incoming, change)
        else:
            self._pass(incoming)

    def request(self, request: Request, client: Any) -> None:
        if request.method == "session/request_permission":
            try:
                params = self.tools.question(patches.members(request.params))
                request = Request(request.id, request.method, patches.raw(params), request.line)
            except codec.JSONError:
                pass  # It is refused as it is, by whoever reads it.
        self._inner.request(request, client)

    def notification(self, notification: Notification) -> None:
        self._inner.notification(notification)

    def options(self, options: list[dict[str, Any]]) -> dict[str, Any] | None:
        """Notes the session's options; its modes, if it has any."""
        return self.modes.take(options)

    # turns

    def _act(self, step: Step) -> None:
        match step:
            case "begin":
                self._turn_over()
                self._acceptance = {}
                self._settle = self._inner.begun()
            case "anew":
                self._doubt = None
                self._epoch += 1
                self._inner.anew()
            case "end" if self._doubt is not None:
                self._finish(self._doubt)
            case _:
                pass

    def _state(self, incoming: Incoming, change: Members) -> None:
        idle = patches.text(change.get("state")) == "idle"
        step = None
        if idle:
            step = self._work.idles(reason=patches.text(change.get("stopReason")) is not None)
        else:
            self._act(self._work.works())
        if step in ("end", "doubt"):
            # What it says of the turn is told by the turn's end, and not as an update's metadata.
            bare = UpdateParams(incoming.params.session_id, Update("state_update"))
            self._pass(Incoming(bare, incoming.line))
        else:
            self._pass(incoming)
        if step == "end":
            self._finish(self._end_of(change, incoming.line))
        elif step == "doubt":
            doubt = self._doubt = self._end_of(change, incoming.line)
            self._later(DOUBT, lambda: self._finish(doubt) if self._doubt is doubt else None)

    def _end_of(self, change: Members, line: bytes) -> Response:
        """An idle state as version 1's answer to the prompt."""
        if patches.text(change.get("stopReason")) == "error":
            return Response(b"", patches.NULL, _fault(change.get("error")), line)
        said: dict[str, Any] = {
            name: change[name]
            for name in _STATED
            if patches.is_object(change.get(name)) or patches.text(change.get(name)) is not None
        }
        if self._acceptance:
            meta = patches.members(said["_meta"]) if "_meta" in said else {}
            said["_meta"] = {**self._acceptance, **meta}
        return Response(b"", patches.raw(said), None, line)

    def _answered(self, response: Response, settle: Settle) -> None:
        """The response to the prompt: it was taken in, or never will be."""
        if self._settle is not settle:
            return
        if response.error is not None:
            self._finish(response)
            return
        self._work.accepted()
        try:
            result = codec.mapping(codec.decode(response.result)) or {}
        except codec.JSONError:
            return
        self._acceptance = codec.mapping(result.get("_meta")) or {}

    def _finish(self, response: Response) -> None:
        """The one end of a turn."""
        settle, self._settle, self._doubt = self._settle, None, None
        self._work.over()
        self._turn_over()
        if settle is not None:
            settle(response)

    def _turn_over(self) -> None:
        self._epoch += 1
        if len(self._seen) > KEPT_IDS:
            for ident in list(islice(self._seen, len(self._seen) - KEPT_IDS)):
                del self._seen[ident]
                for idents in self._filled.values():
                    idents.discard(ident)

    def _pass(self, incoming: Incoming, ident: str | None = None) -> None:
        """Hands an update on. `ident`: the message or call that it is of."""
        late = (
            ident is not None
            and self._seen.setdefault(ident, self._epoch) != self._epoch
            and self._work.running
        )
        if late:
            self._inner.late(incoming)
        else:
            self._inner.update(incoming)

    # kinds

    def _message(self, incoming: Incoming, change: Members) -> None:
        """A whole message: as chunks if it is new; a change of one that was told stays as it is."""
        update = incoming.params.update
        kind, ident = update.kind, update.message_id
        if kind == "user_message":
            self._act(self._work.echoed())
        content = change.get("content")
        blocks = [] if content is None else patches.items(content)
        filled = self._filled[kind]
        if ident is None or ident in filled or not blocks:
            if ident is not None and content is not None and not blocks:
                filled.discard(ident)
            self._pass(incoming, ident)
            return
        filled.add(ident)
        beside = {name: value for name, value in change.items() if name != "content"}
        for index, block in enumerate(blocks):
            chunk = {**beside, "sessionUpdate": _CHUNK_OF[kind], "content": block}
            self._tell(incoming, chunk, ident, further=index > 0)
            beside.pop("_meta", None)

    def _tool(self, incoming: Incoming, change: Members) -> None:
        ident = incoming.params.update.tool_call_id
        told = None if ident is None else self.tools.update(ident, change)
        if told is None:
            self._pass(incoming, ident)
        else:
            self._tell(incoming, told.update, ident, lost=told.lost)

    def _tool_chunk(self, incoming: Incoming, change: Members) -> None:
        ident = incoming.params.update.tool_call_id
        if ident is not None:
            self.tools.chunk(ident, change.get("content"))
        self._pass(incoming, ident)

    def _terminal(self, incoming: Incoming, change: Members) -> None:
        if (ident := patches.text(change.get("terminalId"))) is not None:
            self.tools.terminal(ident, change)
        self._pass(incoming)

    def _subagent(self, incoming: Incoming, change: Members) -> None:
        if (ident := patches.text(change.get("sessionId"))) is not None:
            self._adopt(ident)
        self._pass(incoming)

    def _plan(self, incoming: Incoming, change: Members) -> None:
        told = shapes.plan(codec.decode(patches.raw(change)))
        if told is None:
            self._pass(incoming)
        else:
            self._tell(incoming, told[0], None, lost=told[1])

    def _options(self, incoming: Incoming, change: Members) -> None:
        fields = codec.decode(patches.raw(change))
        options = shapes.config_options(fields.get("configOptions"))
        before = self.modes.current
        self.options(options)
        self._tell(incoming, fields | {"configOptions": options}, None)
        if self.modes.current not in (before, None):
            mode = {"sessionUpdate": "current_mode_update", "currentModeId": self.modes.current}
            self._tell(incoming, mode, None, further=True)

    def _tell(
        self,
        incoming: Incoming,
        update: dict[str, Any],
        ident: str | None,
        *,
        lost: bool = False,
        further: bool = False,
    ) -> None:
        """Hands on an update in version 1's terms in place of the one that came; `further`: after
        the first of several."""
        params: dict[str, Any] = {"sessionId": incoming.params.session_id, "update": update}
        if incoming.params.meta is not None and not further:
            params["_meta"] = incoming.params.meta
        line = codec.encode({"jsonrpc": "2.0", "method": updates.METHOD, "params": params})
        read = updates.decode(line)
        if read is None:
            read = updates.read(Notification(updates.METHOD, patches.raw(params), line))
        if read is not None:
            self._pass(Translated(read.params, line, incoming.raw() if lost else None), ident)


def _fault(error: Raw | None) -> Fault:
    """The failure that ended a turn."""
    fields = patches.members(error) if error is not None and patches.is_object(error) else {}
    code = codec.decode(fields["code"]) if "code" in fields else None
    message = patches.text(fields.get("message"))
    return Fault(
        code if isinstance(code, int) and not isinstance(code, bool) else None,
        message or "the agent's work failed, and it does not say why",
        codec.decode(fields["data"]) if "data" in fields else None,
    )
