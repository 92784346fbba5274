"""MCP: attempts, answers, and calls that must not be made twice."""

from bridge.trace.check.context import field
from bridge.trace.check.finding import Report
from bridge.trace.timeline import Entry

_KEY = "dev.acp-mcp-bridge/idempotency-key"


class Servers:
    """All MCP traffic of a trace."""

    def __init__(self, report: Report) -> None:
        self._say = report.say
        self._answered: dict[str, Entry] = {}
        self._open: dict[str, Entry] = {}

    def see(self, entry: Entry) -> None:
        if entry.event.kind == "attempt":
            data = entry.event.data
            # Whoever called wants it no more: no fault of the server.
            if entry.failed and data.get("outcome") != "cancelled":
                words = f"{data.get('server')}.{data.get('tool')}, attempt {data.get('attempt')}"
                cause = data.get("cause") or data.get("outcome")
                self._say("mcp-failed", entry, f"{words}: {cause}")
        elif entry.role == "request":
            self._request(entry)
        elif entry.role == "response":
            self._response(entry)

    def _request(self, entry: Entry) -> None:
        key = field(entry.fields, "_meta", _KEY)
        if isinstance(key, str) and (answer := self._answered.get(key)) is not None:
            words = f"the same call was answered in line {answer.event.line}"
            self._say("mcp-repeated-answer", entry, words)
        if entry.event.dir == "in":
            self._open[entry.id or ""] = entry

    def _response(self, entry: Entry) -> None:
        request = entry.partner
        if request is None or request.method != "tools/call":
            return
        key = field(request.fields, "_meta", _KEY)
        if isinstance(key, str):
            self._answered[key] = entry
        if entry.failed or entry.fields.get("resultType") not in (None, "complete"):
            return
        if not isinstance(entry.fields.get("content"), list):
            self._say("mcp-result", entry, "content is not a list")

    def end(self) -> None:
        """Requests of ours without an answer are failed attempts, which are events."""
