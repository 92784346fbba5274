"""Permission requests: asked within a turn, answered once, by one of their options."""

from bridge.trace.check.context import Context, field, from_client, listed
from bridge.trace.check.finding import Report
from bridge.trace.timeline import Entry
from bridge.wire.jsonrpc import REQUEST_CANCELLED

_METHOD = "session/request_permission"


class Permissions:
    """One connection's permission requests."""

    def __init__(self, context: Context, report: Report) -> None:
        self._context = context
        self._say = report.say
        self._open: dict[str, Entry] = {}

    def see(self, entry: Entry) -> None:
        if entry.method != _METHOD:
            return
        if entry.role == "request" and not from_client(entry):
            self._open[entry.id or ""] = entry
            self._asked(entry)
        elif entry.role == "response" and entry.partner is not None:
            self._open.pop(entry.id or "", None)
            self._answered(entry, entry.partner)

    def _asked(self, entry: Entry) -> None:
        session = self._context.session(entry)
        if session is not None and session.turn is None and session.running is None:
            self._say("permission-without-turn", entry, "no turn is running")
        seen: set[str] = set()
        for option in listed(entry.fields.get("options")):
            ident = repr(option.get("optionId"))
            if ident in seen:
                self._say("permission-option-duplicate", entry, f"two options {ident}")
            seen.add(ident)

    def _answered(self, entry: Entry, request: Entry) -> None:
        outcome = field(entry.fields, "outcome")
        option = field(outcome, "optionId")
        known = [item.get("optionId") for item in listed(request.fields.get("options"))]
        if field(outcome, "outcome") == "selected":
            if option not in known:
                self._say("permission-option-unknown", entry, f"{option!r} is none of {known}")
            self._late(entry, request, f"{option!r} chosen")
        elif entry.failed and entry.fields.get("code") != REQUEST_CANCELLED:
            # Of a request that its agent took back, such an error is the right answer.
            self._late(entry, request, "answered with an error")

    def _late(self, entry: Entry, request: Entry, how: str) -> None:
        session = self._context.session(request)
        if session is None or session.cancelled is None:
            return
        line = session.cancelled.event.line
        if request.event.line < line:
            self._say("permission-after-cancel", entry, f"cancelled in line {line}: {how}")

    def end(self) -> None:
        for entry in self._open.values():
            self._say("permission-unanswered", entry, "the client never answered")
