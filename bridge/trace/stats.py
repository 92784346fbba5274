"""Figures of a trace: per method, per turn, per exchange; as JSON and as tables.

Owns: what is counted. A turn is a `session/prompt` from its request to its response; its time in
the model is where a model exchange of its session runs, in tools where a tool call is under way
(pending or in progress), counted once where several overlap; the rest is the agent's. Sans-IO.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec

from bridge.trace.timeline import Entry
from bridge.wire import codec

Span = tuple[float, float]


class MethodStats(msgspec.Struct):
    """Calls of one method on one channel; times in seconds, of those that were answered."""

    channel: str
    dir: str | None
    method: str
    count: int = 0
    failed: int = 0
    unanswered: int = 0
    bytes: int = 0
    p50: float | None = None
    p99: float | None = None
    max: float | None = None


class TurnStats(msgspec.Struct):
    """One turn; times in seconds."""

    session: str | None
    acp_session: str | None
    line: int
    start: float
    seconds: float | None
    stop_reason: str | None
    model: float = 0.0
    tools: float = 0.0
    agent: float = 0.0
    chunks: int = 0
    characters: int = 0
    tool_calls: int = 0
    first_update: float | None = None


class TraceStats(msgspec.Struct):
    """All of it."""

    seconds: float
    events: int
    bytes: dict[str, int]
    updates: dict[str, int]
    noise: int
    tokens: dict[str, int]
    retries: int
    methods: list[MethodStats]
    turns: list[TurnStats]


class Statistics:
    """Fed entry by entry; `result` at the end."""

    def __init__(self) -> None:
        self._entries = 0
        self._last = 0.0
        self._bytes: Counter[str] = Counter()
        self._updates: Counter[str] = Counter()
        self._noise = 0
        self._tokens: Counter[str] = Counter()
        self._retries = 0
        self._methods: dict[tuple[str, str | None, str], list[Entry]] = defaultdict(list)
        self._turns: list[_Turn] = []
        self._exchanges: list[Entry] = []

    def add(self, entry: Entry) -> None:
        event = entry.event
        self._entries += 1
        self._last = event.t
        way = event.ch if event.dir is None else f"{event.ch} {event.dir}"
        self._bytes[way] += len(event.content or b"")
        if entry.role in ("request", "notification") and entry.update is None:
            self._methods[event.ch, event.dir, entry.method].append(entry)
        self._noise += entry.role == "noise"
        if event.ch == "acp":
            self._acp(entry)
        elif event.ch == "model" and event.kind == "request":
            self._exchanges.append(entry)
        elif event.ch == "model" and event.kind == "end":
            usage = codec.mapping(event.data.get("usage")) or {}
            self._tokens.update({k: v for k, v in usage.items() if isinstance(v, int)})
        elif (event.ch, event.kind) == ("mcp", "attempt"):
            attempt = event.data.get("attempt")
            self._retries += isinstance(attempt, int) and attempt > 1

    def _acp(self, entry: Entry) -> None:
        if entry.update is not None:
            self._updates[entry.update] += 1
            for turn in reversed(self._turns):
                if (
                    turn.entry.session_id == entry.session_id
                    and turn.entry.event.n == entry.event.n
                ):
                    turn.update(entry)
                    break
        elif entry.role == "request" and entry.method == "session/prompt":
            self._turns.append(_Turn(entry))

    def result(self) -> TraceStats:
        return TraceStats(
            seconds=self._last,
            events=self._entries,
            bytes=dict(self._bytes),
            updates=dict(self._updates.most_common()),
            noise=self._noise,
            tokens=dict(self._tokens),
            retries=self._retries,
            methods=[_method(*key, entries) for key, entries in self._methods.items()],
            turns=[turn.stats(self._exchanges, self._last) for turn in self._turns],
        )


class _Turn:
    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.first: float | None = None
        self.chunks = self.characters = 0
        self._tools: dict[str, Span] = {}
        self._done: list[Span] = []
        self._calls: set[str] = set()

    def update(self, entry: Entry) -> None:
        """An update while the turn runs (those after its end are nobody's)."""
        answer = self.entry.partner
        if answer is not None and answer.event.line < entry.event.line:
            return
        t = entry.event.t
        if self.first is None:
            self.first = t - self.entry.event.t
        if entry.update == "agent_message_chunk":
            self.chunks += 1
            self.characters += len(entry.text or "")
        elif entry.update in ("tool_call", "tool_call_update"):
            self._tool(codec.mapping(entry.fields.get("update")) or {}, t)

    def _tool(self, update: dict[str, Any], t: float) -> None:
        ident = str(update.get("toolCallId"))
        self._calls.add(ident)
        start, _ = self._tools.setdefault(ident, (t, t))
        self._tools[ident] = start, t
        if update.get("status") in ("completed", "failed"):
            self._done.append(self._tools.pop(ident))

    def stats(self, exchanges: Iterable[Entry], last: float) -> TurnStats:
        entry, answer = self.entry, self.entry.partner
        start, end = entry.event.t, answer.event.t if answer is not None else last
        model = _covered((_span(exchange, last) for exchange in self._own(exchanges)), start, end)
        tools = _covered([*self._done, *self._tools.values()], start, end)
        reason = None if answer is None else answer.fields.get("stopReason")
        return TurnStats(
            session=entry.event.session,
            acp_session=entry.session_id,
            line=entry.event.line,
            start=start,
            seconds=None if answer is None else end - start,
            stop_reason=reason if isinstance(reason, str) else None,
            model=model,
            tools=tools,
            agent=max(0.0, end - start - model - tools),
            chunks=self.chunks,
            characters=self.characters,
            tool_calls=len(self._calls),
            first_update=self.first,
        )

    def _own(self, exchanges: Iterable[Entry]) -> Iterable[Entry]:
        return (e for e in exchanges if e.event.session in (None, self.entry.event.session))


def _span(exchange: Entry, last: float) -> Span:
    return exchange.event.t, exchange.partner.event.t if exchange.partner else last


def _covered(spans: Iterable[Span], start: float, end: float) -> float:
    """How much of the time from `start` to `end` the spans cover together."""
    total, at = 0.0, start
    for begin, stop in sorted(spans):
        begin, stop = max(begin, at), min(stop, end)
        if stop > begin:
            total += stop - begin
            at = stop
    return total


def _method(ch: str, direction: str | None, method: str, entries: list[Entry]) -> MethodStats:
    times = sorted(entry.latency for entry in entries if entry.latency is not None)
    requests = [entry for entry in entries if entry.role == "request"]
    return MethodStats(
        channel=ch,
        dir=direction,
        method=method,
        count=len(entries),
        failed=sum(1 for entry in requests if entry.partner is not None and entry.partner.failed),
        unanswered=sum(1 for entry in requests if entry.partner is None),
        bytes=sum(len(entry.event.content or b"") for entry in entries),
        p50=_quantile(times, 0.5),
        p99=_quantile(times, 0.99),
        max=times[-1] if times else None,
    )


def _quantile(times: list[float], share: float) -> float | None:
    """The smallest of the sorted values that at least that share does not exceed."""
    if not times:
        return None
    return times[math.ceil(share * len(times)) - 1]
