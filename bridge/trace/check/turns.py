"""Turns: each begins, says what it says, and ends once, cancelled or not."""

from bridge.trace.check.context import Context, Session, field, from_client
from bridge.trace.check.finding import Report
from bridge.trace.timeline import CHUNKS, Entry

_OF_A_TURN = frozenset(
    {"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan",
     "plan_update", "agent_message", "agent_thought", "tool_call_content_chunk"}
)  # fmt: skip
"""The updates that are part of a turn; usage, titles, modes and the like may come at any time."""


class Turns:
    """One connection's turns, by the rules of its version."""

    def __init__(self, context: Context, report: Report) -> None:
        self._context = context
        self._say = report.say
        self._said: set[str] = set()
        """Sessions whose turn has said or done something."""

    def see(self, entry: Entry) -> None:
        session = self._context.session(entry)
        if session is None:
            return
        client, first = from_client(entry), self._context.speaks == 1
        if entry.method == "session/prompt" and entry.role == "request" and client:
            self._said.discard(session.id)
            if session.turn is not None:
                words = f"line {session.turn.event.line}'s turn is running"
                self._say("prompt-while-running", entry, words)
        elif entry.method == "session/cancel" and client:
            if session.turn is None and session.running is None:
                self._say("cancel-without-turn", entry, "no turn was running")
        elif entry.method == "session/prompt" and entry.role == "response" and not client:
            if first:
                self._ended(entry, session)
        elif entry.update is not None and not client:
            self._update(entry, session, first=first)

    def _ended(self, entry: Entry, session: Session) -> None:
        cancelled = session.cancelled
        reason = entry.fields.get("stopReason")
        if cancelled is not None:
            since = f"cancelled in line {cancelled.event.line}"
            if entry.failed:
                self._say("cancel-as-error", entry, f"{since}, ended with an error")
            elif reason != "cancelled":
                self._say("cancel-ignored", entry, f"{since}, ended with {reason!r}")
        elif reason == "end_turn" and session.id not in self._said:
            self._say("empty-turn", entry, "ended without a word, a thought or a tool call")

    def _update(self, entry: Entry, session: Session, *, first: bool) -> None:
        if entry.update == "state_update":
            self._state(entry, session)
        if entry.update not in _OF_A_TURN:
            return
        self._said.add(session.id)
        if not first:
            if session.running is None and session.turn is None:
                self._say("update-while-idle", entry, "no state update says that it runs")
            return
        ended = session.ended
        if session.turn is not None or ended is None:
            return
        line = f"the turn ended in line {ended.event.line}"
        if session.cancelled is not None and ended.fields.get("stopReason") == "cancelled":
            self._say("update-after-cancel", entry, f"{line}, cancelled")
        elif entry.update not in CHUNKS or entry.text:
            self._say("update-after-end", entry, line)

    def _state(self, entry: Entry, session: Session) -> None:
        update = field(entry.fields, "update")
        if field(update, "state") != "idle" or session.running is None:
            return
        reason = field(update, "stopReason")
        if session.cancelled is not None and reason not in ("cancelled", None):
            line = session.cancelled.event.line
            self._say("cancel-ignored", entry, f"cancelled in line {line}, ended with {reason!r}")

    def end(self) -> None:
        for session in self._context.sessions.values():
            if session.turn is not None:
                self._say("turn-without-end", session.turn, "the turn never ended")
            ended = session.closed is not None
            if session.running is not None and not ended and self._context.speaks > 1:
                self._say("state-without-end", session.running, "never became idle")
