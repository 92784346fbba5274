"""Reading `session/update`: the daemon's hottest path, one decode a line.

Owns: the typed decoder for updates as agents really send them, and a lenient way for the rest.
Rule: an update is never refused; what cannot be read of it is taken as absent, and its bytes are
kept for those who relay it. Called by `bridge.agent.client` for every line.
"""

from typing import Any, Literal

import msgspec

from bridge.wire import codec
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Notification
from protocol_schemas.acp import TextBlock, Update, UpdateParams

METHOD = "session/update"


class Incoming(msgspec.Struct, gc=False):
    """An update with the line it came in."""

    params: UpdateParams
    line: bytes

    def raw(self) -> Raw:
        """The update object as the agent wrote it (with NaN in it, as we write it); raises
        JSONError if it is not UTF-8."""
        try:
            raw = _decode_raw(self.line).params.update
        except (msgspec.DecodeError, RecursionError):
            return Raw(_update_in(self.line))
        data = bytes(raw)
        if not data.isascii():
            try:
                data.decode()
            except UnicodeDecodeError as error:
                raise codec.JSONError(str(error)) from None
        return raw

    def original(self) -> Raw | None:
        """The update that the agent wrote, where this one says it in other terms and less of it."""
        return None

    def metadata(self) -> dict[str, Any] | None:
        """`params._meta` merged with `update._meta`, the update's keys winning (HOST §3)."""
        outer, inner = self.params.meta, self.params.update.meta
        if outer and inner:
            return {**outer, **inner}
        return inner or outer


class _Line(msgspec.Struct, gc=False):
    jsonrpc: Literal["2.0"]
    method: Literal["session/update"]
    params: UpdateParams
    id: Raw | msgspec.UnsetType = msgspec.UNSET


class _RawParams(msgspec.Struct, gc=False):
    update: Raw


class _RawLine(msgspec.Struct, gc=False):
    params: _RawParams


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_raw = msgspec.json.Decoder(_RawLine).decode


def decode(line: bytes) -> Incoming | None:
    """The update in a line, or None if the line is something else or needs `read`."""
    try:
        message = _decode_line(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if message.id is not msgspec.UNSET:
        return None
    return Incoming(message.params, line)


def read(notification: Notification) -> Incoming | None:
    """The update in a notification that the typed decoder refused; None without a session id."""
    params = codec.mapping(codec.decode(notification.params))
    if params is None or not isinstance(params.get("sessionId"), str):
        return None
    fields = codec.mapping(params.get("update")) or {}
    update = Update(
        kind=_text(fields.get("sessionUpdate")) or "",
        content=_content(fields.get("content")),
        message_id=_text(fields.get("messageId")),
        tool_call_id=_text(fields.get("toolCallId")),
        status=_text(fields.get("status")),
        meta=codec.mapping(fields.get("_meta")),
    )
    outer = codec.mapping(params.get("_meta"))
    line = notification.line.removeprefix(codec.BOM)
    return Incoming(UpdateParams(params["sessionId"], update, outer), line)


def _update_in(line: bytes) -> bytes:
    """The update object's bytes in a line that msgspec refuses (lone surrogates, NaN); `null` if
    it has none."""
    # Rare, and so is the need for a scanner.
    from bridge.wire import json_scan

    try:
        start, end = json_scan.skip_space(line, 0), 0
        for name in ("params", "update"):
            spans = {member.key: member for member in json_scan.members(line, start, {})}
            if name not in spans:
                return b"null"
            start, end = spans[name].start, spans[name].end
    except json_scan.NotJSON:
        return codec.encode(codec.decode(line)["params"].get("update"))
    return line[start:end]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _content(value: Any) -> TextBlock | None:
    fields = codec.mapping(value)
    if fields is None:
        return None
    return TextBlock(_text(fields.get("type")) or "", _text(fields.get("text")))
