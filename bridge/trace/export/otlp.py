"""A trace as OpenTelemetry spans, in OTLP's JSON form, by the GenAI conventions.

Owns: which span is whose child, and the ids. Rules: a turn whose prompt carries a `traceparent` in
its `_meta` continues that trace, under that span (W3C trace context); ids are made from the
recording, so exporting twice gives the same spans; contents stay out, sizes and names go in.
"""

import hashlib
import re
from datetime import datetime
from typing import Any

from bridge import __version__
from bridge.trace.timeline import Entry
from bridge.trace.traffic import Attempt, Exchange, Span, Traffic
from bridge.wire import codec
from protocol_schemas.trace import Head

Json = dict[str, Any]
_INTERNAL, _CLIENT = 1, 3
_ERROR = 2
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_PROVIDERS = {"chat": "openai", "responses": "openai", "messages": "anthropic"}


def traceparent(entry: Entry) -> tuple[str, str] | None:
    """The trace and span a message belongs to, by its `_meta`."""
    meta = codec.mapping(entry.fields.get("_meta")) or {}
    match = _TRACEPARENT.fullmatch(str(meta.get("traceparent", "")))
    return (match[1], match[2]) if match else None


class _Spans:
    def __init__(self, head: Head | None) -> None:
        wall = datetime.fromisoformat(head.wall if head else "1970-01-01T00:00:00Z")
        self._began = int(wall.timestamp() * 1_000_000) * 1000
        self._seed = f"{head.wall} {head.pid} {head.t}" if head else "trace"
        self.trace = self._hash("trace", 32)
        self.found: list[Json] = []

    def _hash(self, what: str, size: int) -> str:
        return hashlib.sha256(f"{self._seed} {what}".encode()).hexdigest()[:size]

    def ident(self, kind: str, entry: Entry) -> str:
        return self._hash(f"{kind} {entry.event.line}", 16)

    def add(
        self,
        ident: str,
        name: str,
        kind: int,
        start: float,
        end: float,
        attributes: Json,
        *,
        trace: str,
        parent: str,
        failed: str = "",
    ) -> None:
        span: Json = {
            "traceId": trace,
            "spanId": ident,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": str(self._began + round(start * 1e9)),
            "endTimeUnixNano": str(self._began + round(end * 1e9)),
            "attributes": [
                {"key": key, "value": _value(value)}
                for key, value in attributes.items()
                if value is not None
            ],
            "status": {"code": _ERROR, "message": failed} if failed else {},
        }
        if parent:
            span["parentSpanId"] = parent
        self.found.append(span)


def document(head: Head | None, traffic: Traffic) -> Json:
    """The ExportTraceServiceRequest."""
    spans = _Spans(head)
    places = {id(turn): _turn(spans, turn) for turn in traffic.turns}

    def under(turn: Span | None) -> Json:
        trace, parent = places.get(id(turn), (spans.trace, ""))
        return {"trace": trace, "parent": parent}

    for tool in traffic.tools:
        _tool(spans, tool, under(tool.parent))
    for exchange in traffic.exchanges:
        turn = traffic.turn_at(exchange.session, exchange.start)
        _exchange(spans, exchange, under(turn))
    for attempt in traffic.attempts:
        _attempt(spans, attempt, under(traffic.turn_at(attempt.session, attempt.start)))
    resource = {"service.name": "acp-mcp-bridge", "service.version": __version__}
    attributes = [{"key": key, "value": _value(value)} for key, value in resource.items()]
    scope = {"name": "bridge.trace", "version": __version__}
    found = sorted(spans.found, key=lambda span: int(span["startTimeUnixNano"]))
    scoped = [{"scope": scope, "spans": found}]
    return {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": scoped}]}


def _turn(spans: _Spans, turn: Span) -> tuple[str, str]:
    given = traceparent(turn.entry)
    trace, parent = given or (spans.trace, "")
    ident = spans.ident("turn", turn.entry)
    reason = turn.last.fields.get("stopReason") if turn.last is not None else None
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": turn.entry.session_id,
        "gen_ai.response.finish_reasons": [reason] if isinstance(reason, str) else None,
        "acp.session": turn.entry.event.session,
        "acp.trace.line": turn.entry.event.line,
    }
    failed = "the turn has no end" if turn.open else "the agent answered with an error"
    spans.add(
        ident, "invoke_agent", _INTERNAL, turn.start, turn.end, attributes,
        trace=trace, parent=parent, failed=failed if turn.open or turn.failed else "",
    )  # fmt: skip
    return trace, ident


def _tool(spans: _Spans, tool: Span, place: Json) -> None:
    update = codec.mapping(tool.entry.fields.get("update")) or {}
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool.name,
        "gen_ai.tool.call.id": update.get("toolCallId"),
        "acp.trace.line": tool.entry.event.line,
    }
    failed = "the tool call failed" if tool.failed else ""
    spans.add(
        spans.ident("tool", tool.entry), f"execute_tool {tool.name}", _INTERNAL,
        tool.start, tool.end, attributes, failed=failed, **place,
    )  # fmt: skip


def _exchange(spans: _Spans, exchange: Exchange, place: Json) -> None:
    info = exchange.info
    usage = codec.mapping(info.get("usage")) or {}
    reason = info.get("finish_reason")
    attributes = {
        "gen_ai.operation.name": "chat" if info.get("purpose") in ("turn", "side") else None,
        "gen_ai.provider.name": _PROVIDERS.get(str(info.get("dialect"))),
        "gen_ai.request.model": info.get("model"),
        "gen_ai.usage.input_tokens": usage.get("input"),
        "gen_ai.usage.output_tokens": usage.get("output"),
        "gen_ai.response.finish_reasons": [reason] if isinstance(reason, str) else None,
        "http.request.method": exchange.method,
        "http.response.status_code": exchange.status or None,
        "url.full": exchange.url,
        "http.request.body.size": len(exchange.request_body),
        "http.response.body.size": len(exchange.response_body),
        "acp.trace.line": exchange.entry.event.line,
    }
    outcome = str(info.get("outcome", "open"))
    failed = exchange.status >= 400 or outcome != "complete"
    name = f"chat {info.get('model')}" if info.get("model") else f"{exchange.method} {exchange.url}"
    spans.add(
        spans.ident("model", exchange.entry), name, _CLIENT, exchange.start, exchange.end,
        attributes, failed=str(info.get("error") or outcome) if failed else "", **place,
    )  # fmt: skip


def _attempt(spans: _Spans, attempt: Attempt, place: Json) -> None:
    attributes = {
        "mcp.method.name": attempt.entry.event.data.get("method"),
        "gen_ai.tool.name": attempt.tool,
        "gen_ai.operation.name": "execute_tool",
        "server.name": attempt.server,
        "mcp.attempt": attempt.number,
        "mcp.outcome": attempt.outcome,
        "acp.trace.line": attempt.entry.event.line,
    }
    method = attributes["mcp.method.name"]
    spans.add(
        spans.ident("mcp", attempt.entry), f"{method} {attempt.tool}", _CLIENT,
        attempt.start, attempt.end, attributes,
        failed=(attempt.cause or attempt.outcome) if attempt.failed else "", **place,
    )  # fmt: skip


def _value(value: Any) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}  # pyright: ignore[reportUnknownVariableType]
    return {"stringValue": str(value)}


def text(head: Head | None, traffic: Traffic) -> bytes:
    """The document's JSON."""
    return codec.encode(document(head, traffic)) + b"\n"
