"""One exchange as it is told: gathered while its bytes pass, read when it has ended.

Rule: no byte waits for it. While a response streams, its pieces are only kept (the first and the
last megabytes); what they say is read when the agent has everything. What is told holds no header,
query or body; `Tap` gets those, for the recorder, which finds the credentials in them itself.
Made by bridge.model.relay, one an exchange.
"""

import re
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from bridge.log import debugging, log
from bridge.model import dialects, faults
from bridge.model.dialects import Answer, Kind
from bridge.model.facts import Facts
from bridge.wire.encodings import EncodingError, decoder
from bridge.wire.http_head import Headers, Response, find
from protocol_schemas.model import Change, ModelEvent

Outcome = Literal["complete", "cut", "gone", "refused", "failed"]

_KEPT = 16 << 20
_LAST = re.compile(rb'\[DONE\]|"message_stop"|"response\.(?:completed|incomplete|failed)"')
_FIRST = 1 << 16
_NOTHING: dict[str, Any] = {}


class Tap(Protocol):
    """Gets all that passes, as it passes: `kind` is `request`, `request_body`, `rewrite`,
    `warning`, `forward`, `response`, `response_body`, `stand_in` or `end`; `direction` as the
    bridge sees it. A head's `headers` are pairs of bytes, its `target` and `reason` bytes: they are
    for it to read later, when nobody waits. `data` is not changed any more.
    """

    def __call__(
        self,
        kind: str,
        session: str,
        exchange: int,
        direction: Literal["in", "out"] | None,
        data: dict[str, Any],
        payload: bytes | bytearray | memoryview,
    ) -> None:
        """Takes one record. Must not raise or wait."""
        ...


class Observers(NamedTuple):
    """Who is told: `on_event` an exchange that ended, `tap` everything. Both may be None: then
    nothing is gathered.
    """

    on_event: Callable[[dict[str, Any]], None] | None = None
    tap: Tap | None = None

    @property
    def watching(self) -> bool:
        """Whether exchanges are told to anybody."""
        return self.on_event is not None or self.tap is not None or debugging()


class Silent:
    """An exchange of which nobody is told: what Record does, left out."""

    on_last: Callable[[], None] | None = None
    """Called when a stream's own last event has been passed on, before anything else happens."""

    def request(self, target: bytes, headers: Headers) -> None:
        """The agent's request has come."""

    def body(self, data: bytes | bytearray) -> None:
        """A piece of the request's body has come."""

    def facts(self, facts: Facts, purpose: dialects.Purpose) -> None:
        """What the request says of itself."""

    def forward(self, target: bytes, headers: Headers, changes: list[Change]) -> None:
        """The request goes on."""

    def warn(self, words: str) -> None:
        """Something could not be done that changes nothing for the agent."""

    def head(self, response: Response) -> None:
        """The response's head has come."""

    def piece(self, data: bytes) -> None:
        """A piece of the response's body has been passed on."""

    def changed(self, changes: list[Change]) -> None:
        """The answer has been changed."""

    def answered(self, status: int, limit: str | None) -> None:
        """The proxy has answered itself, for that limit if it was one."""

    def read(self) -> Answer:
        """What the answer says, once it has ended."""
        return Answer()

    def stood_in(self) -> None:
        """The proxy answers in the upstream's place."""

    def end(self, outcome: Outcome, error: str | None = None) -> ModelEvent | None:
        """The exchange has ended; what is told of it."""


class Record(Silent):
    """An exchange that is told of: `event` is what, when it has ended."""

    def __init__(
        self, observers: Observers, session: str, number: int, kind: Kind, method: str, path: str,
        upstream: str,
    ) -> None:  # fmt: skip
        self._on_event, self._tap = observers
        self._kind = kind
        self._start = time.monotonic()
        self.event = ModelEvent(
            "model", session, number, method, path, kind.dialect, kind.purpose, upstream,
            time.time(), "gone",
        )  # fmt: skip
        self.answer = Answer()
        self._reads = kind.purpose in ("turn", "count")
        self._sent: tuple[Headers, bytes] = ([], b"")
        """The request as it went on: whose credentials an error's words may repeat."""
        self._response: Response | None = None
        self._pieces: deque[bytes] = deque()
        self._head = b""
        self._size = 0

    def _tell(
        self, kind: str, direction: Literal["in", "out"] | None, data: dict[str, Any],
        payload: bytes | bytearray | memoryview = b"",
    ) -> None:  # fmt: skip
        if self._tap is not None:
            self._tap(kind, self.event.session, self.event.exchange, direction, data, payload)

    def request(self, target: bytes, headers: Headers) -> None:
        event = self.event
        request_id = find(headers, b"x-acp-model-request-id")
        event.request_id = request_id.decode("latin-1") if request_id else None
        self._tell("request", "in", {"method": event.method, "target": target, "headers": headers})

    def body(self, data: bytes | bytearray) -> None:
        self.event.request_bytes += len(data)
        self._tell("request_body", "in", _NOTHING, data)

    def facts(self, facts: Facts, purpose: dialects.Purpose) -> None:
        self.event.model, self.event.stream = facts.model, facts.stream
        self.event.purpose, self.event.again = purpose, facts.again
        self.event.side = (facts.side or "other") if purpose == "side" else None

    def forward(self, target: bytes, headers: Headers, changes: list[Change]) -> None:
        self.event.changes = changes
        self._sent = (headers, target)
        self._tell_of(changes)
        self._tell("forward", "out", {"target": target, "headers": headers})

    def _tell_of(self, changes: list[Change]) -> None:
        if changes and self._tap is not None:
            self._tell("rewrite", None, {"changes": msgspec.to_builtins(changes)})

    def warn(self, words: str) -> None:
        log.warning("model exchange %d: %s", self.event.exchange, words)
        self._tell("warning", None, {"message": words})

    def head(self, response: Response) -> None:
        self.event.head = time.monotonic() - self._start
        self.event.status = response.status
        self._response = response
        said = {"status": response.status, "reason": response.reason, "headers": response.headers}
        self._tell("response", "in", said)

    def piece(self, data: bytes) -> None:
        event = self.event
        if event.first is None and data:
            event.first = time.monotonic() - self._start
        event.response_bytes += len(data)
        self._tell("response_body", "in", _NOTHING, data)
        if not self._reads:
            return
        if not self._pieces:
            self._head = data[:_FIRST]
        self._pieces.append(data)
        self._size += len(data)
        while self._size > _KEPT and len(self._pieces) > 1:
            self._size -= len(self._pieces.popleft())
        if self.on_last is not None and _LAST.search(data):
            self.on_last()

    def changed(self, changes: list[Change]) -> None:
        self.event.changes = [*self.event.changes, *changes]
        self._tell_of(changes)

    def answered(self, status: int, limit: str | None) -> None:
        self.event.status, self.event.limit = status, limit

    def read(self) -> Answer:
        response = self._response
        if self._pieces and response is not None:
            body = b"".join(self._pieces)
            if self._size < self.event.response_bytes and not body.startswith(self._head):
                # The middle is missing: what is cut in two there is no JSON, and passed over.
                body = self._head + b"\n\n" + body
            headers = response.headers
            encoding = find(headers, b"content-encoding")
            try:
                text = decoder(encoding).feed(body) if encoding else body
            except EncodingError:
                text = b""
            kind = find(headers, b"content-type") or b""
            self.answer = dialects.read_answer(self._kind.dialect, kind, text)
            if response.status >= 400:
                self.answer.error = faults.of_answer(response.status, text)
        elif response is not None and response.status >= 400:
            self.answer.error = faults.of_answer(response.status, b"")
        event, answer = self.event, self.answer
        event.model = answer.model if event.model is None else event.model
        event.usage, event.finish_reason = answer.usage, answer.finish_reason
        return answer

    def stood_in(self) -> None:
        self.event.stand_in = True
        self._tell("stand_in", None, {"message": "the upstream has no list of models"})

    def end(self, outcome: Outcome, error: str | None = None) -> ModelEvent | None:
        event = self.event
        event.end = time.monotonic() - self._start
        event.outcome = outcome
        if (words := error or self.answer.error) is not None:
            event.error = faults.shown(words, *self._sent)
        log.debug("model %s %s: %s %s", event.method, event.path, event.status, outcome)
        if self._tap is None and self._on_event is None:
            return event
        told = msgspec.to_builtins(event)
        self._tell("end", None, told)
        if self._on_event is not None:
            self._on_event(told.copy())
        return event
