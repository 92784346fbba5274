"""Time and death: long silences with something open, and agents that die before they answer."""

from bridge.trace.check.finding import Report
from bridge.trace.timeline import Entry

LONG = 30.0
"""Seconds."""


class Silence:
    """One agent: its messages, its stderr, its process."""

    def __init__(self, report: Report) -> None:
        self._say = report.say
        self._open: dict[tuple[str | None, str], Entry] = {}
        self._last: Entry | None = None

    def see(self, entry: Entry) -> None:
        event = entry.event
        if self._last is not None and self._open and event.t - self._last.event.t > LONG:
            waiting = ", ".join(sorted({request.method for request in self._open.values()}))
            words = f"{event.t - self._last.event.t:.0f} s of silence before this; open: {waiting}"
            self._say("silence", entry, words)
        self._last = entry
        if entry.role == "request":
            self._open[event.dir, entry.id or ""] = entry
        elif entry.role == "response":
            self._open.pop(("in" if event.dir == "out" else "out", entry.id or ""), None)
        elif (event.ch, event.kind) == ("process", "eof"):
            # Its client has left it: it is stopped, whatever it was asked.
            self._open.clear()
        elif (event.ch, event.kind) == ("process", "exit") and entry.failed:
            asked = [request for request in self._open.values() if request.event.dir == "out"]
            if asked:
                how = event.data.get("signal") or f"code {event.data.get('exit_code')}"
                waiting = ", ".join(f"{request.method} #{request.id}" for request in asked)
                self._say("died", entry, f"ended with {how}; open: {waiting}")

    def end(self) -> None:
        """Nothing is left over."""
