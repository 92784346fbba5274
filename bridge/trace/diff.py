"""Two traces compared: capabilities, messages, times.

Owns: what counts as the same message. Rules: ids, session ids and other names that a run makes up
are replaced by their order of appearance before anything is compared; runs of chunks are compared
by their text, since their cut is chance; times are shown, never counted as a difference. Pure.
Called by `bridge.cli.trace`.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from bridge.trace.render import seconds
from bridge.trace.runs import Row, rows
from bridge.trace.stats import Statistics, TraceStats
from bridge.trace.summary import one_line
from bridge.trace.tables import table
from bridge.trace.timeline import Entry
from bridge.wire import codec

_MADE_UP = ("sessionId", "messageId", "toolCallId", "terminalId", "session_id", "updatedAt")
_WORDS = 160


class Difference(msgspec.Struct):
    """`sign`: - only in the first, + only in the second. `line`: there."""

    sign: str
    line: int
    words: str


class Comparison(msgspec.Struct):
    """What two traces do not have in common."""

    offers: list[str]
    messages: list[Difference]
    same: int
    """Messages that are in both."""

    @property
    def differs(self) -> bool:
        return bool(self.offers or self.messages)


def compare(one: list[Entry], other: list[Entry]) -> Comparison:
    """The comparison."""
    left, right = list(rows(one)), list(rows(other))
    names = (_Names(), _Names())
    ours = [_text(row, names[0]) for row in left]
    theirs = [_text(row, names[1]) for row in right]
    found: list[Difference] = []
    same = 0
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            same += b - a
            continue
        found += [Difference("-", left[i].entry.event.line, _words(ours[i])) for i in range(a, b)]
        found += [
            Difference("+", right[i].entry.event.line, _words(theirs[i])) for i in range(c, d)
        ]
    return Comparison(list(_offers(one, other)), found, same)


class _Names:
    """Names that a run makes up, by their order of appearance."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def learn(self, value: Any) -> None:
        """Takes the made-up names in a value."""
        if isinstance(value, dict):
            for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
                if key in _MADE_UP and isinstance(item, str):
                    self._known.setdefault(item, f"<{key} {len(self._known) + 1}>")
                else:
                    self.learn(item)
        elif isinstance(value, list):
            for item in value:  # pyright: ignore[reportUnknownVariableType]
                self.learn(item)

    def replaced(self, text: str) -> str:
        """The text with the stand-ins."""
        for name in sorted(self._known, key=len, reverse=True):
            text = text.replace(name, self._known[name])
        return text


def _text(row: Row, names: _Names) -> str:
    """What is compared of a row."""
    entry, event = row.entry, row.entry.event
    head = f"{event.ch} {event.dir or ''} {entry.role} {entry.update or entry.method}"
    if event.ch == "process":
        data = {
            key: value for key, value in event.data.items() if key not in ("pid", "argv", "cwd")
        }
        return f"{head} {codec.encode(data).decode()}"
    if row.count > 1 or entry.text is not None:
        return f"{head} {names.replaced(row.text or entry.text or '')}"
    names.learn(entry.value)
    value = codec.encode(entry.value).decode(errors="replace")
    return f"{head} {_without_times(names.replaced(value))}"


def _without_times(text: str) -> str:
    """The JSON without what the clock, a port or a process number put there."""
    text = re.sub(r'"(at|head|first|end|started|seconds|waited|pid|seq)":[^,}\]]+', r'"\1":0', text)
    return re.sub(r"127\.0\.0\.1:\d+(/[\w-]{16,})?", "127.0.0.1:PORT", text)


def _words(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _WORDS else text[: _WORDS - 1] + "…"


def _offers(one: Iterable[Entry], other: Iterable[Entry]) -> Iterator[str]:
    """Where the two handshakes differ."""
    for who, left, right in zip(
        ("client", "agent"), _handshake(one), _handshake(other), strict=True
    ):
        for path in sorted(left.keys() | right.keys()):
            a, b = left.get(path, "absent"), right.get(path, "absent")
            if a != b:
                yield f"{who} {path}: {a} -> {b}"


def _handshake(entries: Iterable[Entry]) -> tuple[dict[str, str], dict[str, str]]:
    asked: dict[str, str] = {}
    answered: dict[str, str] = {}
    for entry in entries:
        if entry.method == "initialize" and entry.event.ch == "acp":
            found = asked if entry.role == "request" else answered
            found.update(_leaves(entry.value))
    return asked, answered


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    fields = codec.mapping(value)
    if not fields:
        yield path.lstrip("."), codec.encode(value).decode(errors="replace")
        return
    for key, item in fields.items():
        yield from _leaves(item, f"{path}.{key}")


def report(
    names: tuple[str, str],
    comparison: Comparison,
    figures: tuple[TraceStats, TraceStats],
    *,
    times: bool,
) -> Iterator[str]:
    """The comparison as lines."""
    yield f"- {names[0]}"
    yield f"+ {names[1]}"
    if comparison.offers:
        yield from ("", "handshake", *(f"  {line}" for line in comparison.offers))
    yield ""
    for found in comparison.messages:
        yield f"{found.sign} line {found.line:<6} {found.words}"
    count = len(comparison.messages)
    yield f"{comparison.same} messages are the same, {count} {'is' if count == 1 else 'are'} not"
    yield from ("", *_turns(figures))
    if times:
        yield from ("", *_methods(figures))


def figures_of(entries: Iterable[Entry]) -> TraceStats:
    """A trace's figures."""
    statistics = Statistics()
    for entry in entries:
        statistics.add(entry)
    return statistics.result()


def _turns(figures: tuple[TraceStats, TraceStats]) -> list[str]:
    left, right = (stats.turns for stats in figures)
    found: list[list[str]] = []
    for number in range(max(len(left), len(right))):
        a = left[number] if number < len(left) else None
        b = right[number] if number < len(right) else None
        found.append(
            [
                str(number + 1),
                _time(a.seconds if a else None),
                _time(b.seconds if b else None),
                (a.stop_reason if a else None) or "-",
                (b.stop_reason if b else None) or "-",
            ]
        )
    return table(("turn", "-", "+", "- ends", "+ ends"), found, "turn - +")


def _methods(figures: tuple[TraceStats, TraceStats]) -> list[str]:
    left, right = (
        {(item.channel, item.dir, item.method): item for item in stats.methods} for stats in figures
    )
    found: list[list[str]] = []
    for key in dict.fromkeys([*left, *right]):
        a, b = left.get(key), right.get(key)
        times = [_time(item.p50 if item else None) for item in (a, b)]
        counts = [str(item.count if item else 0) for item in (a, b)]
        found.append([f"{key[0]} {key[1] or ''} {key[2]}", *counts, *times])
    return table(("method", "- calls", "+ calls", "- p50", "+ p50"), found, "")


def _time(value: float | None) -> str:
    return "-" if value is None else seconds(value)
