"""Model exchanges: chat histories that providers refuse, streams that end without an end."""

from typing import Any

import msgspec

from bridge.trace.check.context import field, listed
from bridge.trace.check.finding import Report
from bridge.trace.timeline import Entry
from bridge.trace.traffic import headers_of
from bridge.wire import codec

_LAST_EVENTS = {
    "/chat/completions": (b"[DONE]",),
    "/messages": (b"message_stop",),
    "/responses": (b"response.completed", b"response.incomplete", b"response.failed"),
}


class _Exchange(msgspec.Struct):
    request: Entry
    body: list[bytes] = []
    answer: list[bytes] = []
    whole: bool = True
    packed: bool = False
    """Whether the answer came in an encoding."""
    decoded: bool = False
    """Whether it was written without it."""
    streams: bool = False
    rewritten: bool = False


class Exchanges:
    """All exchanges of a trace, by number."""

    def __init__(self, report: Report) -> None:
        self._say = report.say
        self._open: dict[int | None, _Exchange] = {}

    def see(self, entry: Entry) -> None:
        event = entry.event
        if event.kind == "request":
            self._open[event.n] = _Exchange(entry)
            return
        exchange = self._open.get(event.n)
        if exchange is None:
            return
        match event.kind:
            case "request_body" | "response_body":
                parts = exchange.body if event.kind == "request_body" else exchange.answer
                parts.append(event.content or b"")
                exchange.whole &= "omitted" not in event.data and "cut" not in event.data
                exchange.decoded |= "decoded" in event.data
            case "rewrite":
                exchange.rewritten = True
            case "forward":
                self._asked(exchange)
            case "response":
                kind = _header(event.data, "content-type")
                exchange.packed = _header(event.data, "content-encoding") not in ("", "identity")
                exchange.streams = "event-stream" in kind and event.data.get("status") == 200
            case "end":
                del self._open[event.n]
                self._ended(exchange, entry)
            case _:
                pass

    def _asked(self, exchange: _Exchange) -> None:
        if not exchange.request.method.endswith("/chat/completions") or not exchange.whole:
            return
        try:
            value = codec.decode(b"".join(exchange.body))
        except codec.JSONError:
            return
        Chat(exchange.request, self._say, mended=exchange.rewritten).check(field(value, "messages"))

    def _ended(self, exchange: _Exchange, entry: Entry) -> None:
        data = entry.event.data
        status, outcome = data.get("status"), data.get("outcome")
        if outcome == "cut":
            self._say("stream-cut", entry, "the upstream broke off")
        elif entry.failed and outcome != "gone":
            words = data.get("error") or f"status {status}"
            self._say("model-failed", entry, f"{exchange.request.method}: {words}")
        readable = exchange.whole and (exchange.decoded or not exchange.packed)
        if outcome != "complete" or not (exchange.streams and readable):
            return
        for path, events in _LAST_EVENTS.items():
            tail = b"".join(exchange.answer)[-65536:]
            if exchange.request.method.endswith(path) and not any(e in tail for e in events):
                names = " or ".join(event.decode() for event in events)
                self._say("stream-without-end", entry, f"no {names} at the end of the stream")

    def end(self) -> None:
        """Nothing is left over."""


class Chat:
    """The history in one chat completions request."""

    def __init__(self, entry: Entry, say: Any, *, mended: bool) -> None:
        self._entry = entry
        self._say = say
        self._mended = mended

    def check(self, messages: Any) -> None:
        """Looks at each message in its place."""
        open_calls: dict[str, int] = {}
        for index, message in enumerate(listed(messages)):
            role = message.get("role")
            if role == "tool":
                ident = str(message.get("tool_call_id"))
                if open_calls.pop(ident, None) is None:
                    words = f"messages[{index}]: no open call {ident!r}"
                    self._say("tool-result-orphan", self._entry, words)
                continue
            self._unanswered(open_calls)
            if role == "assistant":
                self._assistant(index, message, open_calls)
        self._unanswered(open_calls)

    def _assistant(self, index: int, message: dict[str, Any], calls: dict[str, int]) -> None:
        found = listed(message.get("tool_calls"))
        alone = not found and not message.get("function_call")
        if alone and message.get("content") is None and not self._mended:
            self._say("null-content", self._entry, f"messages[{index}].content is null or absent")
        for call in found:
            ident = str(call.get("id"))
            calls[ident] = index
            arguments = field(call, "function", "arguments")
            if not _is_object(arguments):
                words = f"messages[{index}]: the arguments of {ident!r} are {str(arguments)[:60]!r}"
                self._say("tool-arguments", self._entry, words)

    def _unanswered(self, calls: dict[str, int]) -> None:
        for ident, index in calls.items():
            words = f"messages[{index}]: call {ident!r} has no result"
            self._say("tool-call-unanswered", self._entry, words)
        calls.clear()


def _is_object(arguments: Any) -> bool:
    if not isinstance(arguments, str):
        return False
    try:
        return codec.mapping(codec.decode(arguments.encode(errors="surrogatepass"))) is not None
    except codec.JSONError:
        return False


def _header(data: dict[str, Any], name: str) -> str:
    pairs = headers_of(data, "headers")
    return next((value for key, value in pairs if key.lower() == name), "").lower()
