"""One side of a recorded ACP conversation as a script: what it says, and after what. Sans-IO.

Owns: the order. Rule: a line is said when everything has come that had come before it in the
recording, told apart by what it is (a call of a method, an answer to an id), not by its bytes: the
living side may use other ids and other words. Bytes are said as they were, but for ids and session
ids, which are the living side's to choose. Used by `bridge.trace.replay.agent` and `client`.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Literal

import msgspec

from bridge.errors import UsageError
from bridge.trace.timeline import Entry, id_text
from bridge.wire import codec, jsonrpc
from bridge.wire.json_edit import edit
from bridge.wire.json_scan import NotJSON
from bridge.wire.jsonrpc import Malformed, Notification, Request, Response

Signature = tuple[str, str]
"""("call", method), ("answer", id), ("noise", ""), ("state", "idle") or EOF."""
EOF: Signature = ("eof", "")
"""The client has no more to say."""
Role = Literal["agent", "client"]


class Step(msgspec.Struct):
    """A line to be said (or to stderr), when `after` has come. `answers`: the recorded request it
    answers, as (method, which call of that method), for the living id."""

    data: bytes
    t: float
    after: dict[Signature, int]
    stderr: bool = False
    answers: tuple[str, int] | None = None


class Ending(msgspec.Struct):
    """How the recorded agent ended: by code or signal, when `after` had come."""

    after: dict[Signature, int]
    code: int = 0
    signal: str | None = None


class Script(msgspec.Struct):
    """All of one side's steps, and what the other side said in all."""

    steps: list[Step]
    heard: dict[Signature, int]
    ending: Ending


def script_of(entries: Iterable[Entry], role: Role, n: int | None) -> Script:
    """The script of one agent's side, or of its client's. Raises UsageError.

    An active relay has recorded the client's own pipes beside the agent's: they are what its
    client said.
    """
    recorded = list(entries)
    apart = role == "client" and any(entry.event.ch == "client" for entry in recorded)
    channel, direction = ("client", "in") if apart else ("acp", _SAYS[role])
    writer = _Writer(role, channel, direction, alone=n is None)
    for entry in recorded:
        if n is None or entry.event.n in (n, None):
            writer.take(entry)
    return writer.script()


_SAYS: dict[Role, str] = {"agent": "in", "client": "out"}


class _Writer:
    """Writes a script down, entry by entry."""

    def __init__(self, role: Role, channel: str, direction: str, *, alone: bool) -> None:
        self._role: Role = role
        self._channel = channel
        self._direction = direction
        self._steps: list[Step] = []
        self._heard: Counter[Signature] = Counter()
        self._calls: Counter[str] = Counter()
        self._which: dict[int, tuple[str, int]] = {}
        self._session: str | None = None
        self._waiting = 0
        """Requests of the client's that are open."""
        self._alone = alone
        """Whether nothing was said that would tell agents apart."""
        self._begun = False
        self._ending: Ending | None = None

    def take(self, entry: Entry) -> None:
        """The next entry."""
        event = entry.event
        if event.ch == "process":
            self._process(entry)
        elif event.ch == "stderr" and self._role == "agent":
            self._steps.append(Step(_line(entry), event.t, dict(self._heard), stderr=True))
        elif event.ch == self._channel and event.content is not None:
            self._begun, self._session = True, event.session
            self._waiting += _opened(entry)
            if event.dir == self._direction:
                self._say(entry)
            else:
                self._hear(entry, event.content)

    def script(self) -> Script:
        """What was written. Raises UsageError."""
        if not self._begun or (self._role == "client" and not self._steps):
            raise UsageError("there is nothing to be played: no agent of that number in the trace")
        ending = self._ending or Ending({**self._heard, EOF: 1})
        return Script(self._steps, dict(self._heard), ending)

    def _say(self, entry: Entry) -> None:
        step = Step(_line(entry), entry.event.t, dict(self._heard))
        if entry.role == "response" and entry.partner is not None:
            step.answers = self._which.get(id(entry.partner))
        self._steps.append(step)

    def _hear(self, entry: Entry, content: bytes) -> None:
        if entry.role == "request":
            self._which[id(entry)] = (entry.method, self._calls[entry.method])
            self._calls[entry.method] += 1
        if (signature := signature_of(content, self._role)) is not None:
            self._heard[signature] += 1

    def _process(self, entry: Entry) -> None:
        event = entry.event
        if event.kind == "start" and self._alone:
            self._begun = True
        elif event.kind == "eof" and self._role == "agent":
            self._heard[EOF] = 1
        elif event.kind == "exit" and self._ending is None and event.session in (
            self._session, None,
        ):  # fmt: skip
            # A relay tells whether its client was still there; of other clients it is clear only
            # where the agent left them without an answer.
            early = self._waiting > 0 or event.data.get("eof") is False
            after = dict(self._heard) if early else {**self._heard, EOF: 1}
            code, signal = event.data.get("exit_code"), event.data.get("signal")
            self._ending = Ending(after, code if isinstance(code, int) else 0, signal)


def _opened(entry: Entry) -> int:
    """How many more of the client's requests are open after it."""
    event = entry.event
    asks, answers = ("in", "out") if event.ch == "client" else ("out", "in")
    if entry.role == "request" and event.dir == asks:
        return 1
    return -1 if entry.role == "response" and event.dir == answers and entry.partner else 0


def _line(entry: Entry) -> bytes:
    return (entry.event.content or b"") + entry.event.end.encode()


def signature_of(line: bytes, role: Role) -> Signature | None:
    """What a line is to the one who plays `role` and hears it; None for what nobody waits for."""
    match jsonrpc.parse(line):
        case Request() as request:
            return "call", request.method
        case Response() as response:
            return "answer", id_text(response.id)
        case Notification() as notification if role == "agent":
            return "call", notification.method
        case Malformed() if role == "agent":
            return "noise", ""
        case Notification() as notification if notification.method == "session/update":
            return _state(notification)
        case _:
            # What an agent says unasked is its own affair.
            return None


def _state(notification: Notification) -> Signature | None:
    """In version 2 a turn ends with an update."""
    params = codec.mapping(codec.decode(notification.params)) or {}
    update = codec.mapping(params.get("update")) or {}
    idle = update.get("sessionUpdate") == "state_update" and update.get("state") == "idle"
    return ("state", "idle") if idle else None


def with_member(line: bytes, path: tuple[str, ...], value: bytes) -> bytes:
    """A message's line with another value at a path; every other byte is as it was. Raises
    NotJSON for what goes beyond JSON (NaN)."""
    at = max(line.find(b"{"), 0)
    return line[:at] + b"".join(edit(line[at:], "replay", {path: value}).parts)


def with_id(line: bytes, ident: bytes) -> bytes:
    """A response's line with another id; the very same bytes if it has it already."""
    message = jsonrpc.parse(line.rstrip(b"\r\n"))
    if not isinstance(message, Response) or message.id == ident:
        return line
    try:
        return with_member(line, ("id",), ident)
    except NotJSON:
        fields = codec.mapping(codec.decode(line)) or {}
        return codec.encode(fields | {"id": codec.Raw(ident)}) + b"\n"
