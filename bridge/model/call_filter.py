"""The rule on unoffered calls, applied to an answer as it comes: bytes in, bytes out, sans-IO.

Rule: of a stream whole events are passed on, each as soon as it is whole, and byte for byte unless
a call in it has to go; an answer in one piece is passed on when it is whole. What is no JSON goes
on unchanged. Used by bridge.model.relay, only where the route's options switch the rule on.
"""

import re
from typing import Any

from bridge.rules import unoffered_calls as rule
from bridge.wire import codec, sse
from bridge.wire.json_edit import edit
from bridge.wire.json_scan import NotJSON
from protocol_schemas.model import Change, Raw

_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")


def names(tools: bytes | Raw, functions: bytes | Raw) -> frozenset[str]:
    """The tools a request offers, from its raw fields (empty: absent)."""
    return rule.offered(_value(tools), _value(functions))


def _value(raw: bytes | Raw) -> Any:
    try:
        return codec.decode(raw) if bytes(raw) else None
    except codec.JSONError:
        return None


class CallFilter:
    """One answer on its way. `changes` are those made so far."""

    def __init__(self, names: frozenset[str], *, stream: bool) -> None:
        self._names = names
        self._stream = stream
        self._held = bytearray()
        self._seen: rule.Seen = {}
        self.changes: list[Change] = []

    def feed(self, data: bytes) -> bytes:
        """What can be passed on now."""
        looked_at = len(self._held)
        self._held += data
        if not self._stream:
            return b""
        out: list[bytes] = []
        start = 0
        for found in _EVENT_END.finditer(self._held, max(0, looked_at - 3)):
            out.append(self._event(bytes(self._held[start : found.end()])))
            start = found.end()
        del self._held[:start]
        return b"".join(out)

    def end(self) -> bytes:
        """The rest, when the answer has ended."""
        rest, self._held = bytes(self._held), bytearray()
        if self._stream:
            return self._event(rest)
        try:
            edits = rule.in_answer(codec.decode(rest), self._names)
            return self._edited(rest, edits) if edits else rest
        except (codec.JSONError, NotJSON):
            return rest

    @property
    def held(self) -> int:
        """Bytes that wait."""
        return len(self._held)

    def _event(self, raw: bytes) -> bytes:
        if b"tool_calls" not in raw:
            return raw
        parser = sse.Parser()
        events = parser.feed(raw)
        data = events[0].data if events else parser.rest
        try:
            edits = rule.in_chunk(codec.decode(data), self._names, self._seen)
            if not edits:
                return raw
            edited = self._edited(data, edits)
        except (codec.JSONError, NotJSON):
            return raw
        # Data in one line, as everybody sends it, is replaced where it stands.
        return raw.replace(data, edited, 1) if data in raw else sse.encode(edited)

    def _edited(self, text: bytes, edits: rule.Edits) -> bytes:
        spliced = edit(text, rule.NAME, edits)
        self.changes += spliced.changes
        return b"".join(spliced.parts)
