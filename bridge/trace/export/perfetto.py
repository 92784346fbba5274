"""A trace as Chrome trace events, which Perfetto (https://ui.perfetto.dev) and about:tracing open.

Owns: the tracks: one process a channel, one thread a session or an exchange. Rule: spans that may
overlap on a thread are asynchronous events (`b`, `e`), as the format wants it; runs of chunks are
one span with their number and size.
"""

from collections.abc import Iterable
from typing import Any

from bridge.trace.runs import rows
from bridge.trace.summary import summarise
from bridge.trace.timeline import Entry
from bridge.trace.traffic import Traffic
from bridge.wire import codec

Json = dict[str, Any]
_LANES = (
    *("host", "client", "conductor", "acp", "stderr", "process"),
    *("bridge", "model", "mcp", "trace"),
)
_NAMES = {"acp": "agent (ACP)", "host": "host", "mcp": "MCP servers", "model": "model"}


class _Events:
    def __init__(self) -> None:
        self.found: list[Json] = []
        self._threads: dict[tuple[str, str], int] = {}
        self._ids = 0

    def place(self, ch: str, thread: str) -> Json:
        """The process and thread of a lane, named when they are first used."""
        pid = _LANES.index(ch) + 1 if ch in _LANES else len(_LANES) + 1
        if (ch, thread) not in self._threads:
            if not any(lane == ch for lane, _ in self._threads):
                self._name("process_name", pid, 0, _NAMES.get(ch, ch))
            tid = self._threads[ch, thread] = len(self._threads) + 1
            self._name("thread_name", pid, tid, thread)
        return {"pid": pid, "tid": self._threads[ch, thread]}

    def _name(self, what: str, pid: int, tid: int, name: str) -> None:
        meta = {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}
        self.found.append(meta)

    def span(self, where: Json, name: str, kind: str, start: float, end: float, args: Json) -> None:
        """A span that may overlap others of its thread."""
        self._ids += 1
        base = {"name": name, "cat": kind, "id": self._ids, **where}
        self.found.append(base | {"ph": "b", "ts": _us(start), "args": args})
        self.found.append(base | {"ph": "e", "ts": _us(end), "args": {}})

    def instant(self, where: Json, name: str, kind: str, t: float, args: Json) -> None:
        base = {"name": name, "cat": kind, "ph": "i", "s": "t", "ts": _us(t)}
        self.found.append(base | where | {"args": args})


def document(entries: Iterable[Entry], traffic: Traffic) -> Json:
    """The trace in the JSON object format."""
    events = _Events()
    for turn in traffic.turns:
        where = events.place("acp", _session(turn.entry))
        stop = turn.last.fields.get("stopReason") if turn.last is not None else "open"
        events.span(where, "turn", "turn", turn.start, turn.end, {"stop": stop, **_at(turn.entry)})
    for span in (*traffic.calls, *traffic.tools):
        where = events.place(span.entry.event.ch, _session(span.entry))
        args = {"open": span.open, "failed": span.failed, **_at(span.entry)}
        events.span(where, span.name, span.kind, span.start, span.end, args)
    for exchange in traffic.exchanges:
        where = events.place("model", exchange.session or "exchanges")
        info = ("status", "outcome", "model", "usage", "finish_reason", "error")
        args = {name: exchange.info[name] for name in info if exchange.info.get(name)}
        name = f"{exchange.method} {exchange.url}"
        events.span(where, name, "model", exchange.start, exchange.end, args | _at(exchange.entry))
    for attempt in traffic.attempts:
        where = events.place("mcp", attempt.server)
        args = {"attempt": attempt.number, "outcome": attempt.outcome, "cause": attempt.cause}
        name = f"{attempt.tool} #{attempt.number}"
        events.span(where, name, "mcp", attempt.start, attempt.end, args | _at(attempt.entry))
    _rest(events, entries)
    events.found.sort(key=lambda event: (event["ph"] != "M", event["ts"]))
    return {"displayTimeUnit": "ms", "traceEvents": events.found}


def _rest(events: _Events, entries: Iterable[Entry]) -> None:
    """What takes no time, and runs of chunks."""
    for row in rows(entries):
        entry = row.entry
        event = entry.event
        if entry.role in ("request", "response") or event.kind in ("attempt", "http", "forward"):
            continue
        where = events.place(event.ch, _session(entry))
        name = entry.update or entry.method
        args = {"text": row.text[:2000] if row.count > 1 else summarise(entry), **_at(entry)}
        if row.count > 1:
            args |= {"count": row.count, "bytes": row.size}
            name = f"{name} ×{row.count}"
            events.span(where, name, "run", event.t, row.last.event.t, args)
        else:
            events.instant(where, name, entry.role, event.t, args)


def _session(entry: Entry) -> str:
    return entry.event.session or entry.session_id or "-"


def _at(entry: Entry) -> Json:
    return {"line": entry.event.line}


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def text(entries: list[Entry], traffic: Traffic) -> bytes:
    """The document's JSON."""
    return codec.encode(document(entries, traffic)) + b"\n"
