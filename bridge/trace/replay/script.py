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
from bridge.trace.timeline import Entry
from bridge.wire import codec, jsonrpc
from bridge.wire.jsonrpc import Malformed, Notification, Request, Response

Signature = tuple[str, str]
"""("call", method) or ("answer", id)."""
Side = Literal["in", "out"]


class Step(msgspec.Struct):
    """A line to be said (or to stderr), when `after` has come. `answers`: the recorded request it
    answers, as (method, which call of that method), for the living id."""

    data: bytes
    t: float
    after: dict[Signature, int]
    stderr: bool = False
    answers: tuple[str, int] | None = None


class Ending(msgspec.Struct):
    """How the recorded agent ended: by code or signal, at once or when its client had gone."""

    code: int = 0
    signal: str | None = None
    at_once: bool = False


class Script(msgspec.Struct):
    """All of one side's steps, and what the other side said in all."""

    steps: list[Step]
    heard: dict[Signature, int]
    ending: Ending


def script_of(entries: Iterable[Entry], side: Side, n: int | None) -> Script:
    """The script of the agent's side (`in`) or the client's (`out`). Raises UsageError."""
    steps: list[Step] = []
    heard: Counter[Signature] = Counter()
    calls: Counter[str] = Counter()
    which: dict[int, tuple[str, int]] = {}
    ending, waiting = Ending(), 0
    for entry in entries:
        event = entry.event
        if n is not None and event.n not in (n, None):
            continue
        if event.ch == "stderr" and side == "in":
            steps.append(Step(_line(entry), event.t, dict(heard), stderr=True))
        elif event.ch == "process" and event.kind == "exit":
            code, signal = event.data.get("exit_code"), event.data.get("signal")
            ended = Ending(code if isinstance(code, int) else 0, signal)
            ended.at_once = waiting > 0
            ending = ended
        if event.ch != "acp" or event.content is None:
            continue
        waiting += _opened(entry)
        if event.dir == side:
            step = Step(_line(entry), event.t, dict(heard))
            if entry.role == "response" and entry.partner is not None:
                step.answers = which.get(id(entry.partner))
            steps.append(step)
            continue
        if entry.role == "request":
            which[id(entry)] = (entry.method, calls[entry.method])
            calls[entry.method] += 1
        if (signature := signature_of(event.content)) is not None:
            heard[signature] += 1
    if not steps:
        raise UsageError("there is nothing to be played: no agent of that number in the trace")
    return Script(steps, dict(heard), ending)


def _opened(entry: Entry) -> int:
    """How many more of the client's requests are open after it."""
    if entry.role == "request" and entry.event.dir == "out":
        return 1
    return -1 if entry.role == "response" and entry.event.dir == "in" and entry.partner else 0


def _line(entry: Entry) -> bytes:
    return (entry.event.content or b"") + entry.event.end.encode()


def signature_of(line: bytes) -> Signature | None:
    """What a message of the other side is; None for what nobody waits for."""
    match jsonrpc.parse(line):
        case Request() as request:
            return "call", request.method
        case Notification() as notification:
            return ("call", notification.method) if "update" not in notification.method else None
        case Response() as response:
            return "answer", response.id.decode(errors="replace")
        case Malformed():
            return None


def with_id(line: bytes, ident: bytes) -> bytes:
    """A response's line with another id; the very same bytes if it has it already."""
    message = jsonrpc.parse(line.rstrip(b"\r\n"))
    if not isinstance(message, Response) or message.id == ident:
        return line
    fields = codec.mapping(codec.decode(line.rstrip(b"\r\n"))) or {}
    return codec.encode(fields | {"id": codec.Raw(ident)}) + b"\n"
