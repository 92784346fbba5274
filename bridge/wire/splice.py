"""Minimal edits in a JSON body: what must change is replaced, inserted or cut out, the rest stays.

Owns: reading a chat completions request (`Chat`) and turning the rules' wishes into spans of bytes.
Rule: the text is never written anew. White space, key order, number forms, escapes and duplicate
keys stay as they are; a text that needs nothing is passed on as the same object. Of a duplicate
key the last counts and is edited; leaving a key out leaves all of them out.
Called by bridge.model with the rules of bridge.rules; knows none of them.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from bridge.wire.json_scan import (
    Member,
    NotJSON,
    Text,
    elements,
    is_utf8,
    members,
    raw_array,
    raw_object,
    scan,
    skip_space,
    values,
    without_surrogates,
)
from protocol_schemas.model import Change, ChatMessage, ChatRequest, Raw

T = TypeVar("T")
Edits = dict[str, bytes | None]
MessageRule = Callable[[ChatMessage], Edits]
Parts = list[bytes | bytearray | memoryview]

_typed = msgspec.json.Decoder(ChatRequest).decode
_MESSAGE_FIELDS = ChatMessage.__struct_fields__
_REQUEST_FIELDS = tuple(name for name in ChatRequest.__struct_fields__ if name != "messages")
_SHOWN = 200
_OBJECT, _ARRAY = b"{["


class Wish(NamedTuple):
    """What a rule wants a key to be: raw JSON, or None to be left out."""

    rule: str
    value: bytes | None


class Span(NamedTuple):
    """Bytes to put in the place of a part of the text."""

    start: int
    end: int
    data: bytes


class Spliced(NamedTuple):
    """A body with edits: its parts in order, their size together, and what was changed."""

    parts: Parts
    size: int
    changes: list[Change]


class Chat:
    """A chat completions request. Raises NotJSON for what is no JSON object."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._scan = text
        """The text to find places in: as long as the text itself."""
        try:
            self.request = _typed(text)
        except (msgspec.DecodeError, RecursionError):
            self.request = self._read_again()

    def _read_again(self) -> ChatRequest:
        """Reads what msgspec did not: lone surrogates, which JavaScript sends, stand for others;
        around what it still does not take (deep nesting, a message that is no object) it is asked
        for what it does take, and the rest is scanned.
        """
        self._scan = without_surrogates(self._text)
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            return _typed(self._scan)
        if not is_utf8(self._text):
            raise NotJSON("not UTF-8")
        found: list[ChatMessage] = []
        inside = self._members()
        for start, end in self._places(inside):
            # One that is no object is no message: it keeps its place, and no rule applies.
            fields = self._message(start, end) if self._scan[start] == _OBJECT else []
            found.append(ChatMessage(**_values(self._scan, fields, _MESSAGE_FIELDS)))
        return ChatRequest(found, **_values(self._scan, inside, _REQUEST_FIELDS))

    def splice(
        self, rules: Sequence[tuple[str, MessageRule]], top: tuple[str, Edits] | None = None
    ) -> Spliced | None:
        """The body as the rules want it; None if they want nothing, or it is not UTF-8.

        `rules` are asked about each message, in order; of two that want one key the first wins.
        `top` are wishes for the request itself, with the name of the rule that has them.
        """
        wanted: dict[int, dict[str, Wish]] = {}
        for index, message in enumerate(self.request.messages):
            for name, rule in rules:
                if edits := rule(message):
                    for key, value in edits.items():
                        wanted.setdefault(index, {}).setdefault(key, Wish(name, value))
        above = {key: Wish(top[0], value) for key, value in top[1].items()} if top else {}
        if not (wanted or above) or not is_utf8(self._text):
            return None
        inside = self._members()
        spans, changes = edit_object(self._text, self._start, inside, above)
        places = self._places(inside) if wanted else []
        for index, wishes in wanted.items():
            start, end = places[index]
            path = f"messages[{index}]."
            fields = self._message(start, end)
            more, changed = edit_object(self._text, start, fields, wishes, path)
            spans += more
            changes += changed
        return Spliced(*cut(self._text, spans), changes)

    @property
    def _start(self) -> int:
        return skip_space(self._text, 0)

    def _members(self) -> list[Member]:
        """The request's members."""
        known = _taken(raw_object, self._scan)
        return scan(self._scan) if known is None else members(self._scan, self._start, known)

    def _places(self, inside: list[Member]) -> list[tuple[int, int]]:
        """Where the messages stand."""
        last = _last(inside).get("messages")
        if last is None or self._scan[last.start] != _ARRAY:
            return []
        known = _taken(raw_array, memoryview(self._scan)[last.start : last.end])
        return elements(self._scan, last.start, known, 1)

    def _message(self, start: int, end: int) -> list[Member]:
        known = _taken(raw_object, memoryview(self._scan)[start:end])
        return members(self._scan, start, known or {}, 2)


def _taken(decode: Callable[[Text | memoryview], T], text: Text | memoryview) -> T | None:
    """What msgspec makes of the text; None for what it does not take."""
    try:
        return decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def edit_fields(
    text: Text, known: dict[str, Raw], rule: str, edits: Edits, *, inside: str | None = None
) -> Spliced:
    """The object `text`, whose `values` are known, with its members as wished; or with those of the
    object that is its member `inside`. Raises NotJSON.
    """
    if not is_utf8(text):
        raise NotJSON("not UTF-8")
    start = skip_space(text, 0)
    found = members(text, start, known)
    path = ""
    if inside is not None:
        member = _last(found)[inside]
        start, path = member.start, f"{inside}."
        found = members(text, start, values(text[start : member.end]))
    wishes = {key: Wish(rule, value) for key, value in edits.items()}
    spans, changes = edit_object(text, start, found, wishes, path)
    return Spliced(*cut(text, spans), changes)


def edit_object(
    text: Text, start: int, inside: list[Member], wishes: dict[str, Wish], path: str = ""
) -> tuple[list[Span], list[Change]]:
    """What has to be put where so that the object at `start` is as wished."""
    last = _last(inside)
    spans: list[Span] = []
    changes: list[Change] = []
    added: list[bytes] = []
    gone: set[str] = set()
    for key, (rule, value) in wishes.items():
        member = last.get(key)
        before = None if member is None else _shown(text[member.start : member.end])
        if value is None and member is not None:
            gone.add(key)
        elif value is not None and member is not None:
            spans.append(Span(member.start, member.end, value))
        elif value is not None:
            added.append(b'"%b":%b' % (key.encode(), value))
        changes.append(Change(rule, path + key, before, None if value is None else _shown(value)))
    kept = [index for index, member in enumerate(inside) if member.key not in gone]
    if added:
        comma = b"," if kept else b""
        at = inside[kept[-1]].end if kept else start + 1
        spans.append(Span(at, at, comma + b",".join(added)))
    if gone:
        spans += _cuts(inside, kept)
    return spans, changes


def _cuts(inside: list[Member], kept: list[int]) -> list[Span]:
    """The members that are not kept, each run of them with the commas that have to go."""
    if not kept:
        return [Span(inside[0].at, inside[-1].end, b"")]
    spans: list[Span] = []
    for before, after in zip([-1, *kept], [*kept, len(inside)], strict=True):
        if after - before == 1:
            continue
        if after < len(inside):
            spans.append(Span(inside[before + 1].at, inside[after].at, b""))
        else:
            spans.append(Span(inside[before].end, inside[-1].end, b""))
    return spans


def cut(text: Text, spans: list[Span]) -> tuple[Parts, int]:
    """The text with the spans replaced, as parts, none of them copied, and their size."""
    view = memoryview(text)
    parts: Parts = []
    position = 0
    for start, end, data in sorted(spans):
        parts += (view[position:start], data)
        position = end
    parts.append(view[position:])
    parts = [part for part in parts if part]
    return parts, sum(map(len, parts))


def _last(inside: list[Member]) -> dict[str, Member]:
    return {member.key: member for member in inside}


def _values(text: Text, inside: list[Member], names: tuple[str, ...]) -> dict[str, Raw]:
    last = _last(inside)
    found = {name: last[name] for name in names if name in last}
    return {name: Raw(bytes(text[at.start : at.end])) for name, at in found.items()}


def _shown(value: Text) -> str:
    """A value for the record: whole if short."""
    text = bytes(value[: _SHOWN + 1]).decode(errors="replace")
    return text if len(value) <= _SHOWN else f"{text[:_SHOWN]}… ({len(value)} bytes)"
