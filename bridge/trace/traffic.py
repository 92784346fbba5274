"""A trace as spans of time: model exchanges, MCP attempts, turns, tool calls, other requests.

Owns: which events make one of these. Rule: what has no end in the trace ends with the trace, and
says so (`open`). Pure; used by the exports and the page.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from bridge.trace.timeline import Entry
from bridge.wire import codec

Headers = list[tuple[str, str]]


class Exchange(msgspec.Struct):
    """A model exchange; times in seconds of the trace, None where it did not come so far."""

    entry: Entry
    n: int | None
    session: str | None
    start: float
    end: float
    open: bool = True
    method: str = ""
    url: str = ""
    request_headers: Headers = []
    request_body: bytes = b""
    status: int = 0
    reason: str = ""
    response_headers: Headers = []
    response_body: bytes = b""
    head: float | None = None
    pieces: list[tuple[float, bytes]] = []
    partial: str = ""
    """Why a body is not whole, where it is not."""
    decoded: bool = False
    """Whether the response's body was written without its encoding."""
    omitted: bool = False
    """Whether a part of it was left out."""
    info: dict[str, Any] = {}
    """What the proxy said of it at its end (protocol_schemas.model.ModelEvent)."""


class Attempt(msgspec.Struct):
    """One try of an MCP call."""

    entry: Entry
    server: str
    tool: str
    number: int
    session: str | None
    start: float
    end: float
    outcome: str
    failed: bool
    cause: str = ""
    request: Entry | None = None
    response: Entry | None = None
    http: dict[str, Any] = {}
    """The heads of its HTTP exchange (an event `http`), where it was one."""


class Span(msgspec.Struct):
    """A turn, a tool call or another request. `entry` begins it, `last` ends it."""

    kind: str
    name: str
    entry: Entry
    last: Entry | None
    start: float
    end: float
    failed: bool = False
    parent: "Span | None" = None

    @property
    def open(self) -> bool:
        return self.last is None


class Traffic:
    """All spans of a trace."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.exchanges: list[Exchange] = []
        self.attempts: list[Attempt] = []
        self.turns: list[Span] = []
        self.tools: list[Span] = []
        self.calls: list[Span] = []
        self.end = 0.0
        self._open: dict[int | None, Exchange] = {}
        self._sent: list[Entry] = []
        self._heads: dict[tuple[str, str], dict[str, Any]] = {}
        self._tools: dict[tuple[int | None, str | None, str], Span] = {}
        for entry in entries:
            self.end = entry.event.t
            self._see(entry)
        for span in (*self.turns, *self.tools, *self.calls):
            span.end = self.end if span.open else span.end
        for exchange in self._open.values():
            exchange.end = self.end

    def _see(self, entry: Entry) -> None:
        event = entry.event
        if event.ch == "model":
            self._model(entry)
        elif event.ch == "mcp":
            self._mcp(entry)
        elif event.ch in ("acp", "host", "client", "conductor") and entry.role == "request":
            self._request(entry)
        elif event.ch == "acp" and entry.update in ("tool_call", "tool_call_update"):
            self._tool(entry)

    # model

    def _model(self, entry: Entry) -> None:
        event, data = entry.event, entry.event.data
        if event.kind == "request":
            exchange = Exchange(entry, event.n, event.session, event.t, event.t)
            exchange.method = str(data.get("method", ""))
            exchange.request_headers = _headers(data)
            exchange.url = entry.method.partition(" ")[2]
            self.exchanges.append(exchange)
            self._open[event.n] = exchange
            return
        exchange = self._open.get(event.n)
        if exchange is None:
            return
        exchange.end = event.t
        if "omitted" in data or "cut" in data:
            exchange.partial = f"omitted ({data.get('encoding')})" if "omitted" in data else "cut"
        match event.kind:
            case "request_body":
                exchange.request_body += event.content or b""
            case "response":
                exchange.head = event.t
                status = data.get("status")
                exchange.status = status if isinstance(status, int) else 0
                exchange.reason = str(data.get("reason") or "")
                exchange.response_headers = _headers(data)
            case "response_body":
                exchange.decoded |= "decoded" in data
                exchange.omitted |= "omitted" in data or "cut" in data
                exchange.pieces.append((event.t, event.content or b""))
            case "end":
                self._ended(exchange, data)
            case _:
                pass

    def _ended(self, exchange: Exchange, data: dict[str, Any]) -> None:
        del self._open[exchange.n]
        exchange.open = False
        exchange.info = data
        exchange.url = str(data.get("upstream", "")).rstrip("/") + str(data.get("path", ""))
        exchange.response_body = b"".join(piece for _, piece in exchange.pieces)

    # MCP

    def _mcp(self, entry: Entry) -> None:
        event, data = entry.event, entry.event.data
        if event.kind == "http":
            self._heads[str(data.get("server")), str(data.get("rpc"))] = data
            return
        if event.kind != "attempt":
            if event.dir == "out" and entry.role == "request":
                self._sent.append(entry)
            return
        tool = str(data.get("tool") or data.get("method"))
        request = next((e for e in self._sent if _subject(e) == tool), None)
        if request is not None:
            self._sent.remove(request)
        took = data.get("seconds")
        seconds = took if isinstance(took, int | float) and 0 <= took <= event.t else 0.0
        number = data.get("attempt")
        self.attempts.append(
            Attempt(
                entry,
                server=str(data.get("server")),
                tool=tool,
                number=number if isinstance(number, int) else 1,
                session=event.session,
                start=event.t - seconds,
                end=event.t,
                outcome=str(data.get("outcome")),
                failed=entry.failed,
                cause=str(data.get("cause") or ""),
                request=request,
                response=None if request is None else request.partner,
                http={} if request is None else self._http(str(data.get("server")), request),
            )
        )

    def _http(self, server: str, request: Entry) -> dict[str, Any]:
        return self._heads.pop((server, str(request.id)), {})

    # the rest

    def _request(self, entry: Entry) -> None:
        kind = "turn" if entry.method == "session/prompt" and entry.event.ch == "acp" else "call"
        last = entry.partner
        end = last.event.t if last is not None else entry.event.t
        failed = last is not None and last.failed
        span = Span(kind, entry.method, entry, last, entry.event.t, end, failed)
        (self.turns if kind == "turn" else self.calls).append(span)

    def _tool(self, entry: Entry) -> None:
        update = codec.mapping(entry.fields.get("update")) or {}
        ident = str(update.get("toolCallId"))
        key = entry.event.n, entry.session_id, ident
        span = self._tools.get(key)
        if span is None:
            title = update.get("name") or update.get("title") or ident
            span = Span("tool", str(title), entry, None, entry.event.t, entry.event.t)
            span.parent = self._turn_of(entry)
            self._tools[key] = span
            self.tools.append(span)
        if update.get("status") in ("completed", "failed"):
            span.last, span.end = entry, entry.event.t
            span.failed = update.get("status") == "failed"
            del self._tools[key]

    def _turn_of(self, entry: Entry) -> Span | None:
        for turn in reversed(self.turns):
            same = turn.entry.event.n == entry.event.n
            if same and turn.entry.session_id == entry.session_id:
                return turn
        return None

    def turn_at(self, session: str | None, t: float) -> Span | None:
        """The turn of a host's session that runs at a time."""
        for turn in self.turns:
            ours = session in (None, turn.entry.event.session)
            if ours and turn.start <= t and (turn.open or t <= turn.end):
                return turn
        return None


def _headers(data: dict[str, Any]) -> Headers:
    return headers_of(data, "headers")


def headers_of(data: dict[str, Any], name: str) -> Headers:
    """The headers that an event shows under a name."""
    found: Headers = []
    for pair in _list(data.get(name)):
        match _list(pair):
            case [header, value]:
                found.append((str(header), str(value)))
            case _:
                continue
    return found


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else []  # pyright: ignore[reportUnknownArgumentType]


def _subject(entry: Entry) -> str:
    return str(entry.fields.get("name") or entry.method)
