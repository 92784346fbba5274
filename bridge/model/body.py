"""A request's body that has to be looked into: decoded, read, and spliced where a rule wants it.

Rule: what needs nothing goes on as the very bytes that came, encoded as they were. What is changed
goes on plain, without its Content-Encoding. What cannot be read goes on unchanged, with a warning
for the record, unless a limit depends on it (415). Used by bridge.model.relay.
"""

from collections.abc import Callable, Sequence
from functools import partial

import anyio
import anyio.to_thread
import msgspec

from bridge.model import dialects, facts
from bridge.model.call_filter import names
from bridge.model.dialects import Dialect, Kind
from bridge.model.facts import UNREAD, Facts
from bridge.rules import content, empty_tool_calls, limits, null_fields
from bridge.rules.message import Edits
from bridge.wire import codec
from bridge.wire.encodings import EncodingError, TooLong, decode
from bridge.wire.json_scan import NotJSON, Text, values
from bridge.wire.splice import Chat, Spliced, edit_fields
from protocol_schemas.model import ABSENT, ChatMessage, ChatRequest, ModelOptions, Raw
from protocol_schemas.profile import SideCall

CEILING = 1 << 30
"""Bytes of a body that is read, as sent and decoded: far above what any model takes."""
_IN_PLACE = 1 << 16
"""Bytes of an encoded body that are decoded without a thread."""
_LIMIT = "max_turn_tokens"
_GEMINI_CAPS = (
    ("generationConfig", "maxOutputTokens"),
    # Protocol buffers' JSON has every name in both spellings.
    ("generation_config", "max_output_tokens"),
)
_NULL = Raw(b"null")

MessageRule = Callable[[ChatMessage], Edits]


class Unreadable(ValueError):
    """A body in an encoding that cannot be read though it must be."""


class Mended(msgspec.Struct, gc=False):
    """A body that was read: its edits, if any, what it says of itself, and (where a rule on answers
    needs them) the names of the tools it offers.
    """

    spliced: Spliced | None
    facts: Facts = UNREAD
    offered: frozenset[str] | None = None


class Mender:
    """What one route's options do to a body. Made once a route."""

    def __init__(self, options: ModelOptions, side_calls: Sequence[SideCall] = ()) -> None:
        self._side_calls = side_calls
        self._cap = options.limits.max_turn_tokens
        self._filters = options.drop_unoffered_calls
        self._rules: list[tuple[str, MessageRule]] = []
        if options.mend_content:
            mend = partial(content.mend, beside_tool_calls=options.tool_call_content)
            self._rules.append((content.NAME, mend))
        if options.drop_empty_tool_calls:
            self._rules.append((empty_tool_calls.NAME, empty_tool_calls.mend))
        if options.drop_nulls:
            self._rules.append((null_fields.NAME, null_fields.mend))

    def reads(self, kind: Kind) -> bool:
        """Whether a request of that kind has to be read at all."""
        return kind.dialect == "chat" or (kind.purpose == "turn" and self._cap is not None)

    async def decoded(self, body: Text, encoding: bytes) -> Text | None:
        """The body decoded; None if its encoding cannot be read. Raises TooLong, Unreadable."""
        if encoding.strip().lower() in (b"", b"identity"):
            return body
        try:
            if len(body) <= _IN_PLACE:
                return decode(encoding, body, CEILING)
            return await anyio.to_thread.run_sync(decode, encoding, body, CEILING)
        except TooLong:
            raise
        except EncodingError as error:
            if self._cap is not None:
                raise Unreadable(f"the limit {_LIMIT} needs the body read, but {error}") from None
            return None

    def mend(self, text: Text, dialect: Dialect, *, tell: bool) -> Mended:
        """What has to go on in the place of the text; with `tell`, what the text says of itself."""
        try:
            if dialect != "chat":
                return self._capped(text, dialect)
            chat = Chat(text)
            offered = None
            if self._filters:
                offered = names(chat.request.tools, chat.request.functions)
            elif not tell and self._cap is None:
                return Mended(chat.splice(self._rules))
            found = facts.of_chat(chat.request, text, self._side_calls)
            top = None
            if self._cap is not None:
                top = (_LIMIT, _lower(dialect, _caps(chat.request), self._cap))
            return Mended(chat.splice(self._rules, top), found, offered)
        except (NotJSON, codec.JSONError):
            return Mended(None)

    def _capped(self, text: Text, dialect: Dialect) -> Mended:
        fields = values(text)
        found = facts.of_fields(dialect, fields, self._side_calls)
        if self._cap is None:
            return Mended(None, found)
        if dialect == "gemini":
            return Mended(_lower_gemini(text, fields, self._cap), found)
        edits = _lower(dialect, fields, self._cap)
        return Mended(edit_fields(text, fields, _LIMIT, edits) if edits else None, found)


def _caps(request: ChatRequest) -> dict[str, Raw]:
    caps = {name: getattr(request, name) for name in dialects.TOKEN_CAPS["chat"]}
    return {name: raw for name, raw in caps.items() if raw != ABSENT}


def _lower(dialect: Dialect, fields: dict[str, Raw], cap: int) -> Edits:
    """The edits that lower a request's own cap on the answer's tokens."""
    caps = dialects.TOKEN_CAPS.get(dialect, ())
    edits: Edits = {}
    for name in caps:
        if name in fields:
            edits |= _lowered(name, fields[name], cap)
    if caps and not any(name in fields for name in caps):
        edits[caps[-1]] = b"%d" % cap
    return edits


def _lower_gemini(text: Text, fields: dict[str, Raw], cap: int) -> Spliced | None:
    config, name = next((pair for pair in _GEMINI_CAPS if pair[0] in fields), _GEMINI_CAPS[0])
    if fields.get(config, _NULL) == _NULL:
        edits: Edits = {config: b'{"%b":%d}' % (name.encode(), cap)}
        return edit_fields(text, fields, _LIMIT, edits)
    try:
        inner = values(bytes(fields[config]))
    except NotJSON:
        return None
    name = next((each for _, each in _GEMINI_CAPS if each in inner), name)
    edits = _lowered(name, inner.get(name, _NULL), cap)
    return edit_fields(text, fields, _LIMIT, edits, inside=config) if edits else None


def _lowered(name: str, asked: Raw, cap: int) -> Edits:
    value = limits.lowered(cap, codec.decode(asked))
    return {} if value is None else {name: b"%d" % value}
