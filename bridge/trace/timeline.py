"""Events understood: what each is, which request a response belongs to, and how long it took.

Owns: the requests that are open on each side of each channel. Rule: nothing is refused; what
cannot be made out is `noise` or a plain event, and stays in the list. One `Timeline` a trace, fed
in order; all the commands look at its entries. Sans-IO.
"""

from typing import Any, Literal

import msgspec

from bridge.trace.reader import Event
from bridge.wire import codec, jsonrpc
from bridge.wire.jsonrpc import Malformed, Notification, Request, Response

Role = Literal["request", "response", "notification", "noise", "event"]
CHUNKS = {
    "agent_message_chunk": "text",
    "agent_thought_chunk": "thought",
    "user_message_chunk": "user text",
}
"""The updates that come in runs, and what their content is."""

MESSAGES = ("acp", "client", "conductor", "mcp")
"""The channels that carry JSON-RPC."""
_SUCCESSOR = (
    *("proxy/successor", "_proxy/successor"),
    *("_proxy/successor/request", "_proxy/successor/notification"),
)
_NO_VALUE: dict[str, Any] = {}


class Entry(msgspec.Struct, gc=False):
    """An event and what it means.

    `method`: of a response, its request's; of a host's packet, its operation or `event/NAME`; of
    any other event, its kind. `id`: the JSON text of it. `value`: the decoded params, result,
    error or packet. `partner`: the line of the response to a request, or of the request to a
    response, once known. `latency`: seconds between the two.
    """

    event: Event
    role: Role
    method: str = ""
    id: str | None = None
    value: Any = None
    failed: bool = False
    """Whether it is a failure: an error response, a failed operation, noise."""
    session_id: str | None = None
    """ACP's."""
    update: str | None = None
    """The kind of a `session/update`."""
    text: str | None = None
    """The text of a chunk."""
    partner: "Entry | None" = None
    latency: float | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """`value` if it is an object, else an empty one."""
        return codec.mapping(self.value) or _NO_VALUE


class Timeline:
    """Pairs requests and responses. A request is known by its channel, agent, side and id."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int | None, str | None, str], Entry] = {}

    def add(self, event: Event) -> Entry:
        """The event's meaning; a response also completes its request's entry."""
        entry = self._understood(event)
        if entry.role == "request" and entry.id is not None:
            self._open[event.ch, event.n, event.dir, entry.id] = entry
        elif entry.role == "response" and entry.id is not None:
            self._pair(entry)
        return entry

    def unanswered(self) -> list[Entry]:
        """The requests that got no response, in order."""
        return list(self._open.values())

    def restart(self) -> None:
        """Another recording begins."""
        self._open.clear()

    def _pair(self, response: Entry) -> None:
        event = response.event
        other = "in" if event.dir == "out" or event.ch == "model" else "out"
        request = self._open.pop((event.ch, event.n, other, response.id or ""), None)
        if request is None:
            return
        response.partner, request.partner = request, response
        response.method = request.method
        response.session_id = response.session_id or request.session_id
        response.latency = request.latency = event.t - request.event.t

    def _understood(self, event: Event) -> Entry:
        if event.ch in MESSAGES and event.kind is None:
            return _message(event)
        if event.ch == "host":
            return _packet(event)
        text = event.content.decode(errors="replace") if event.content is not None else None
        method = event.kind or event.ch
        entry = Entry(event, "event", method, None, event.data, _is_failure(event), text=text)
        if event.ch == "model":
            self._exchange(entry)
        return entry

    def _exchange(self, entry: Entry) -> None:
        """A model exchange's first event is its request, its last the response."""
        event = entry.event
        if event.kind == "request":
            entry.role, entry.id = "request", str(event.n)
            entry.method = f"{event.data.get('method')} {_path(str(event.data.get('target')))}"
        elif event.kind == "end":
            entry.role, entry.id = "response", str(event.n)


def _path(target: str) -> str:
    """A target without the query, and without the part that is the proxy's own (unguessable)."""
    path = target.partition("?")[0]
    _, own, rest = path.split("/", 2) if path.count("/") > 1 else ("", "", "")
    return f"/{rest}" if len(own) > 16 else path


def _is_failure(event: Event) -> bool:
    data = event.data
    match event.ch:
        case "model":
            outcome = data.get("outcome")
            return event.kind == "end" and (outcome != "complete" or _is_bad(data.get("status")))
        case "mcp":
            return data.get("outcome") not in (None, "answer") or _is_bad(data.get("status"))
        case "process":
            return bool(data.get("exit_code")) or bool(data.get("signal"))
        case _:
            return False


def _is_bad(status: Any) -> bool:
    return isinstance(status, int) and status >= 400


def id_text(raw: bytes) -> str:
    """The JSON text of an id, the same one however its peer has spelt it (`é`, `\\u00e9`)."""
    if raw.isascii() and b"\\" not in raw:
        return raw.decode()
    return codec.encode(codec.decode(raw)).decode()


def _message(event: Event) -> Entry:
    content = event.content or b""
    match jsonrpc.parse(content):
        case Request() as request:
            method, value = _opened(request.method, _decoded(request.params))
            entry = Entry(event, "request", method, id_text(request.id), value)
        case Notification() as notification:
            method, value = _opened(notification.method, _decoded(notification.params))
            entry = Entry(event, "notification", method, None, value)
            if method == "session/update":
                _update(entry)
        case Response() as response:
            error, ident = response.error, id_text(response.id)
            value = _decoded(response.result) if error is None else msgspec.to_builtins(error)
            entry = Entry(event, "response", "", ident, value, error is not None)
        case Malformed() as noise:
            text = content.decode(errors="replace")
            blank = not content.strip()
            return Entry(event, "noise", noise.reason, None, None, not blank, text=text)
    session_id = entry.fields.get("sessionId")
    entry.session_id = session_id if isinstance(session_id, str) else None
    return entry


def _opened(method: str, value: Any) -> tuple[str, Any]:
    """What is in a chain's envelope; what comes without one as it is."""
    inner = (codec.mapping(value) or {}) if method in _SUCCESSOR else {}
    name = inner.get("method")
    return (name, inner.get("params")) if isinstance(name, str) else (method, value)


def _update(entry: Entry) -> None:
    update = codec.mapping(entry.fields.get("update")) or {}
    kind = update.get("sessionUpdate")
    entry.update = kind if isinstance(kind, str) else "?"
    if entry.update in CHUNKS:
        text = (codec.mapping(update.get("content")) or {}).get("text")
        entry.text = text if isinstance(text, str) else None


def _packet(event: Event) -> Entry:
    value = codec.mapping(_decoded(event.content or b""))
    if value is None:
        text = (event.content or b"").decode(errors="replace")
        return Entry(event, "noise", "not a packet", failed=True, text=text)
    ident = codec.encode(value["id"]).decode() if value.get("id") is not None else None
    if isinstance(value.get("event"), str):
        entry = Entry(event, "notification", f"event/{value['event']}", None, value)
        if value["event"] == "update":
            _update(entry)
        return entry
    if "ok" in value:
        return Entry(event, "response", "", ident or "null", value, value["ok"] is not True)
    return Entry(event, "request", str(value.get("operation", "?")), ident or "null", value)


def _decoded(raw: bytes | codec.Raw) -> Any:
    try:
        return codec.decode(raw)
    except codec.JSONError:
        return None
