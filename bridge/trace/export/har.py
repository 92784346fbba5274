"""Model and MCP traffic as HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec), for the
network panels of browsers.

Owns: the mapping. Rules: an MCP attempt has the heads of the exchange that carried it; one over
stdio, or that got no response, has none, and says so in its comment. A streamed answer keeps the
time of each piece in `_pieces`.
"""

import base64
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from bridge import __version__
from bridge.trace.traffic import Attempt, Exchange, Headers, Traffic, headers_of
from bridge.wire import codec
from protocol_schemas.trace import Head

Json = dict[str, Any]
_UNKNOWN = -1


def document(head: Head | None, traffic: Traffic) -> Json:
    """The HAR document."""
    began = datetime.fromisoformat(head.wall if head else "1970-01-01T00:00:00Z")
    entries = [_exchange(exchange, began) for exchange in traffic.exchanges]
    entries += [_attempt(attempt, began) for attempt in traffic.attempts]
    entries.sort(key=lambda entry: entry["startedDateTime"])
    creator = {"name": "acp-mcp-bridge", "version": __version__}
    return {"log": {"version": "1.2", "creator": creator, "pages": [], "entries": entries}}


def _exchange(exchange: Exchange, began: datetime) -> Json:
    head = exchange.end if exchange.head is None else exchange.head
    first = exchange.pieces[0][0] if exchange.pieces else head
    timings = {"send": 0, "wait": _ms(head - exchange.start), "receive": _ms(exchange.end - head)}
    kind = _header(exchange.response_headers, "content-type")
    entry = _entry(
        began,
        exchange.start,
        exchange.end,
        method=exchange.method or "POST",
        url=exchange.url,
        request_headers=exchange.request_headers,
        request=exchange.request_body,
        status=exchange.status,
        reason=exchange.reason,
        response_headers=exchange.response_headers,
        content=_content(exchange.response_body, kind),
        timings=timings,
    )
    if exchange.pieces:
        entry["_first"] = _ms(first - exchange.start)
        entry["_pieces"] = [
            {"time": _ms(t - exchange.start), "size": len(piece)} for t, piece in exchange.pieces
        ]
    words = [str(exchange.info.get("outcome", "open")), exchange.partial]
    entry["comment"] = ", ".join(filter(None, words))
    return entry


def _attempt(attempt: Attempt, began: datetime) -> Json:
    request = attempt.request.event.content or b"" if attempt.request else b""
    answer = attempt.response.event.content or b"" if attempt.response else b""
    http, kind = attempt.http, "application/json"
    status = http.get("status", attempt.entry.event.data.get("status"))
    place = f"{quote(attempt.server, safe='')}/{quote(attempt.tool, safe='')}"
    sent = headers_of(http, "headers") or [("Content-Type", kind)]
    received = headers_of(http, "response_headers") or [("Content-Type", kind)]
    entry = _entry(
        began,
        attempt.start,
        attempt.end,
        method=str(http.get("method", "POST")),
        url=str(http.get("url", f"http://mcp.invalid/{place}")),
        request_headers=sent,
        request=request,
        status=status if isinstance(status, int) else (200 if not attempt.failed else 0),
        reason=str(http.get("reason", attempt.cause)),
        response_headers=received,
        content=_content(answer, kind),
        timings={"send": 0, "wait": _ms(attempt.end - attempt.start), "receive": 0},
    )
    words = f"MCP attempt {attempt.number} of {attempt.tool} ({attempt.outcome})"
    entry["comment"] = words if http else f"{words}; without HTTP heads"
    return entry


def _entry(
    began: datetime,
    start: float,
    end: float,
    *,
    method: str,
    url: str,
    request_headers: Headers,
    request: bytes,
    status: int,
    reason: str,
    response_headers: Headers,
    content: Json,
    timings: Json,
) -> Json:
    asked: Json = {
        "method": method,
        "url": url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _pairs(request_headers),
        "queryString": _pairs(_query(url)),
        "headersSize": _UNKNOWN,
        "bodySize": len(request),
    }
    if request:
        kind = _header(request_headers, "content-type") or "application/octet-stream"
        asked["postData"] = {"mimeType": kind, "text": request.decode(errors="replace")}
    return {
        "startedDateTime": (began + timedelta(seconds=start)).isoformat(timespec="milliseconds"),
        "time": _ms(end - start),
        "request": asked,
        "response": {
            "status": status,
            "statusText": reason,
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": _pairs(response_headers),
            "content": content,
            "redirectURL": _header(response_headers, "location"),
            "headersSize": _UNKNOWN,
            "bodySize": content["size"],
        },
        "cache": {},
        "timings": timings,
    }


def _query(url: str) -> Headers:
    """A URL's query; of what is none, nothing."""
    try:
        return parse_qsl(urlsplit(url).query, keep_blank_values=True)
    except ValueError:
        return []


def _content(body: bytes, kind: str) -> Json:
    content: Json = {"size": len(body), "mimeType": kind or "application/octet-stream"}
    try:
        return content | {"text": body.decode()}
    except UnicodeDecodeError:
        return content | {"text": base64.b64encode(body).decode(), "encoding": "base64"}


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in pairs]


def _header(headers: Headers, name: str) -> str:
    return next((value for key, value in headers if key.lower() == name), "")


def _ms(seconds: float) -> float:
    return round(max(0.0, seconds) * 1000, 3)


def text(head: Head | None, traffic: Traffic) -> bytes:
    """The document's JSON."""
    return codec.encode(document(head, traffic)) + b"\n"
