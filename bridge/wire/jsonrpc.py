"""JSON-RPC 2.0 messages: one line in, one typed message out; and the lines we write.

Owns: telling requests, notifications, responses and noise apart. Rules: the envelope alone is
decoded, params and result stay raw; ids stay the bytes they were, so that an answer carries the
asker's id in its own type; nothing a peer writes raises.
Called by `bridge.rpc.connection` and all over `bridge.mcp`.
"""

import re
from typing import Any, Literal

import msgspec

from bridge.wire import codec
from bridge.wire.codec import Raw

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
AUTH_REQUIRED = -32000
RESOURCE_NOT_FOUND = -32002
UNSUPPORTED_VERSION = -32022

_NULL = Raw(b"null")


class Request(msgspec.Struct, gc=False):
    """A call that wants an answer. `id`: its JSON text; `params`: raw, `null` where absent."""

    id: bytes
    method: str
    params: Raw
    line: bytes


class Notification(msgspec.Struct, gc=False):
    """A call that wants none."""

    method: str
    params: Raw
    line: bytes


class Fault(msgspec.Struct):
    """The `error` of a response; `code` is None where the peer gave no number."""

    code: int | None
    message: str
    data: Any = None


class Response(msgspec.Struct):
    """The answer to a call of ours: `result` (raw), or `error`."""

    id: bytes
    result: Raw
    error: Fault | None
    line: bytes


class Malformed(msgspec.Struct):
    """A line that is no JSON-RPC 2.0 message. `id`: of a broken request, to be refused by it."""

    reason: str
    line: bytes
    id: bytes | None = None

    @property
    def code(self) -> int:
        """The error's code for whoever sent it."""
        return PARSE_ERROR if self.reason.startswith("not ") else INVALID_REQUEST


Message = Request | Notification | Response | Malformed


class _Envelope(msgspec.Struct, gc=False):
    jsonrpc: Literal["2.0"]
    id: Raw | msgspec.UnsetType = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: Raw | msgspec.UnsetType = msgspec.UNSET
    result: Raw | msgspec.UnsetType = msgspec.UNSET
    error: Raw | msgspec.UnsetType = msgspec.UNSET


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_ESCAPE = b"\x1b"
# ECMA-48's control sequences, operating system commands, and single characters.
_ESCAPES = re.compile(
    rb"(?:\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-Z\\^-~])+"
)


def parse(line: bytes) -> Message:
    """What a line is; never raises."""
    if not line.isascii():
        # msgspec does not look into what stays raw; bytes that are not UTF-8 must not travel on.
        try:
            line.decode()
        except UnicodeDecodeError as error:
            return Malformed(f"not UTF-8: {error}", line)
        line = line.removeprefix(codec.BOM)
    try:
        envelope = _decode_envelope(line)
    except (msgspec.DecodeError, RecursionError):
        return _parse_escaped(line) if line[:1] == _ESCAPE else _parse_slowly(line)
    return _message(envelope, line)


def _parse_escaped(line: bytes) -> Message:
    """A message right behind terminal escapes: a program that hides its cursor ends no line."""
    escapes = _ESCAPES.match(line)
    rest = line if escapes is None else line[escapes.end() :]
    return parse(rest) if rest[:1] == b"{" else _parse_slowly(line)


def _message(envelope: _Envelope, line: bytes) -> Message:
    ident = None if envelope.id is msgspec.UNSET else bytes(envelope.id)
    if ident is not None and ident[:1] in (b"[", b"{", b"t", b"f"):
        return Malformed("its id is neither a string nor a number", line)
    if envelope.method is not msgspec.UNSET:
        params = _NULL if envelope.params is msgspec.UNSET else envelope.params
        if ident is None:
            return Notification(envelope.method, params, line)
        return Request(ident, envelope.method, params, line)
    if ident is None:
        return Malformed("it has neither method nor id", line)
    error = None if envelope.error is msgspec.UNSET else _fault(envelope.error)
    if envelope.result is msgspec.UNSET and error is None:
        error = Fault(None, "the response has neither result nor error")
    result = _NULL if envelope.result is msgspec.UNSET else envelope.result
    return Response(ident, result, error, line)


def _fault(raw: Raw) -> Fault | None:
    """The error in whatever shape: agents also send bare strings, and null beside a result."""
    try:
        value = codec.decode(raw)
    except codec.JSONError as error:
        return Fault(None, f"an unreadable error ({error})")
    if value is None:
        return None
    fields = codec.mapping(value)
    if fields is None:
        return Fault(None, value if isinstance(value, str) else bytes(raw).decode())
    code, message = fields.get("code"), fields.get("message")
    return Fault(
        code if isinstance(code, int) and not isinstance(code, bool) else None,
        message if isinstance(message, str) and message else bytes(raw).decode(),
        fields.get("data"),
    )


def _parse_slowly(line: bytes) -> Message:
    """For what the typed decoder refuses: lone surrogates, deep nesting, odd types, noise."""
    try:
        members = _members(line)
    except codec.JSONError as error:
        return Malformed(f"not JSON: {error}", line)
    if members is None:
        return Malformed("JSON, but not an object", line)
    if members.get("jsonrpc") != b'"2.0"':
        return Malformed('no "jsonrpc":"2.0" in it', line)
    envelope = _Envelope("2.0")
    for name in ("id", "params", "result", "error"):
        if name in members:
            setattr(envelope, name, Raw(members[name]))
    if "method" in members:
        method = codec.decode(members["method"]) if members["method"][:1] == b'"' else None
        if method is None:
            return Malformed("its method is not a string", line, members.get("id"))
        envelope.method = method
    return _message(envelope, line)


def _members(line: bytes) -> dict[str, bytes] | None:
    """The members of an object, each in its own bytes; None for other JSON; raises JSONError."""
    # A peer that sends lone surrogates is rare, and so is the need for a scanner.
    from bridge.wire import json_scan

    try:
        start = json_scan.skip_space(line, 0)
        if line[start : start + 1] == b"{":
            found = json_scan.members(line, start, {})
            if json_scan.skip_space(line, json_scan.skip_value(line, start)) == len(line):
                return {member.key: line[member.start : member.end] for member in found}
    except json_scan.NotJSON:
        pass  # Python's JSON goes further: NaN.
    fields = codec.mapping(codec.decode(line))
    return None if fields is None else {key: codec.encode(fields[key]) for key in fields}


def request(ident: int | str, method: str, params: Any) -> bytes:
    """A request's line."""
    return codec.encode({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}) + b"\n"


def notification(method: str, params: Any) -> bytes:
    """A notification's line."""
    return codec.encode({"jsonrpc": "2.0", "method": method, "params": params}) + b"\n"


def result(ident: bytes, value: Any) -> bytes:
    """An answer's line. `ident`: the request's id as it came."""
    return b'{"jsonrpc":"2.0","id":' + ident + b',"result":' + codec.encode(value) + b"}\n"


def failure(ident: bytes, code: int, message: str, data: Any = None) -> bytes:
    """A refusal's line. `ident`: the request's id as it came."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return b'{"jsonrpc":"2.0","id":' + ident + b',"error":' + codec.encode(error) + b"}\n"
