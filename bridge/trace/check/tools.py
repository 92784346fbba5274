"""Tool calls and terminals: begun, updated, finished, in that order."""

from typing import NamedTuple

from bridge.trace.check.context import Context, field, from_client
from bridge.trace.check.finding import Report
from bridge.trace.timeline import Entry

_FINISHED = ("completed", "failed")


class _Call(NamedTuple):
    """`entry`: what began it; `in_turn`: it was not history that was replayed."""

    entry: Entry
    status: str | None
    in_turn: bool


class Tools:
    """One connection's tool calls, by session, and its terminals."""

    def __init__(self, context: Context, report: Report) -> None:
        self._context = context
        self._say = report.say
        self._calls: dict[str, dict[str, _Call]] = {}
        self._terminals: dict[str, Entry] = {}

    def see(self, entry: Entry) -> None:
        if entry.update in ("tool_call", "tool_call_update") and not from_client(entry):
            self._update(entry)
        elif entry.method == "session/prompt" and entry.role == "response":
            self._turn_ended(entry)
        elif entry.method == "session/load" and entry.role == "request":
            # The replay tells of old calls anew.
            self._calls.pop(entry.session_id or "", None)
        elif entry.method == "session/request_permission" and entry.role == "request":
            self._asked(entry)
        elif entry.method.startswith("terminal/") and self._context.speaks == 1:
            self._terminal(entry)

    def _update(self, entry: Entry) -> None:
        update = field(entry.fields, "update")
        ident, status = field(update, "toolCallId"), field(update, "status")
        if not isinstance(ident, str):
            return
        calls = self._calls.setdefault(entry.session_id or "", {})
        known = calls.get(ident)
        if self._context.speaks == 1:
            begun = known is not None and known.entry.update is not None
            if entry.update == "tool_call" and known is not None and begun:
                words = f"{ident!r} was begun in line {known.entry.event.line}"
                self._say("tool-id-duplicate", entry, words)
            elif entry.update == "tool_call_update" and known is None:
                self._say("tool-unknown", entry, f"{ident!r} was not begun")
        old = known.status if known is not None else None
        if old in _FINISHED and isinstance(status, str) and status not in _FINISHED:
            self._say("tool-goes-back", entry, f"{ident!r} was {old}, now {status}")
        new = status if isinstance(status, str) else old
        first = known.entry if known is not None else entry
        calls[ident] = _Call(first, new, self._in_turn(entry))

    def _asked(self, entry: Entry) -> None:
        """A permission request may be the first to tell of a call."""
        ident = field(entry.fields, "toolCall", "toolCallId")
        if isinstance(ident, str):
            calls = self._calls.setdefault(entry.session_id or "", {})
            calls.setdefault(ident, _Call(entry, None, self._in_turn(entry)))

    def _in_turn(self, entry: Entry) -> bool:
        session = self._context.session(entry)
        return session is not None and session.turn is not None

    def _turn_ended(self, entry: Entry) -> None:
        if self._context.speaks != 1:
            return
        calls = self._calls.get(entry.session_id or "", {})
        left = [
            ident for ident, call in calls.items() if call.in_turn and call.status not in _FINISHED
        ]
        if left and entry.fields.get("stopReason") == "end_turn":
            self._say("tool-left-open", entry, f"not finished: {', '.join(left)}")
        for ident in left:
            del calls[ident]

    def _terminal(self, entry: Entry) -> None:
        if entry.role == "response" and entry.method == "terminal/create" and not entry.failed:
            self._terminals[str(entry.fields.get("terminalId"))] = entry
        elif (
            entry.role == "request" and entry.method != "terminal/create" and not from_client(entry)
        ):
            ident = str(entry.fields.get("terminalId"))
            if ident not in self._terminals:
                self._say("terminal-unknown", entry, f"there is no terminal {ident!r}")
            if entry.method == "terminal/release":
                self._terminals.pop(ident, None)

    def end(self) -> None:
        for ident, entry in self._terminals.items():
            self._say("terminal-not-released", entry, f"terminal {ident!r}")
