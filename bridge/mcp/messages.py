"""JSON-RPC between caller, proxy and server: what is looked into, and what keeps its bytes.

Rule: of a message that is relayed only the top level is taken apart; its members stay `Raw`.
Used all over `bridge.mcp`; telling the kinds of message apart is `bridge.wire.jsonrpc`'s.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec

from bridge.wire import codec, jsonrpc
from bridge.wire.codec import Raw

Members = dict[str, Raw]

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode


class Answer(NamedTuple):
    """A server's answer: its `result`, or its `error` object; the other is None."""

    result: Raw | None
    error: Raw | None = None

    @property
    def code(self) -> int | None:
        """The error's code."""
        if self.error is None:
            return None
        code = codec.decode(self.error)["code"]
        return code if isinstance(code, int) else None


def members(raw: Raw | bytes) -> Members | None:
    """A JSON object's members, their bytes as they came; None for anything else."""
    try:
        return _members(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        fields = codec.mapping(codec.decode(raw))
    except codec.JSONError:
        return None
    if fields is None:
        return None
    return {key: Raw(codec.encode(value)) for key, value in fields.items()}


def items(raw: Raw | bytes) -> list[Raw] | None:
    """A JSON list's items, their bytes as they came; None for anything else."""
    try:
        return _items(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        value = codec.decode(raw)
    except codec.JSONError:
        return None
    return (
        [Raw(codec.encode(item)) for item in cast(list[Any], value)]
        if isinstance(value, list)
        else None
    )


def split(body: bytes) -> list[bytes]:
    """The messages of a body: one, or those of a batch (JSON-RPC 2.0 §6). At least one: what is
    no message will be found to be none."""
    batch = items(body) if body.lstrip()[:1] == b"[" else None
    return [bytes(item) for item in batch] if batch else [body]


def sent(data: bytes) -> list[bytes]:
    """The messages in what a server sent. Bytes that are no UTF-8 become U+FFFD: no answer is lost
    for a letter, and no tool called again for it."""
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            data = data.decode(errors="replace").encode()
    return split(data)


def request(ident: int | str, method: str, params: Mapping[str, Any] | None) -> bytes:
    """A request's bytes, without the line end."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": ident, "method": method}
    if params is not None:
        message["params"] = params
    return codec.encode(message)


def notification(method: str, params: Any = None) -> bytes:
    """A notification's bytes, without the line end."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return codec.encode(message)


def response(ident: bytes, answer: Answer) -> bytes:
    """An answer's bytes, without the line end, under the asker's id."""
    if answer.error is not None:
        return codec.encode({"jsonrpc": "2.0", "id": Raw(ident), "error": answer.error})
    return codec.encode({"jsonrpc": "2.0", "id": Raw(ident), "result": answer.result})


def error(code: int, message: str, data: Any = None) -> Answer:
    """A refusal of our own."""
    fields: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        fields["data"] = data
    return Answer(None, Raw(codec.encode(fields)))


def result(value: Any) -> Answer:
    """An answer of our own."""
    return Answer(Raw(codec.encode(value)))


def answer(response: jsonrpc.Response) -> Answer | None:
    """What a server answered; None where there is neither a result nor an error in it."""
    fault = response.error
    if fault is None:
        return Answer(response.result)
    sent = (members(response.line) or {}).get("error")
    if sent is None:
        return None
    if fault.code is None or "message" not in (members(sent) or {}):
        # Bent into shape, so that the caller's client can read it.
        code = jsonrpc.INTERNAL_ERROR if fault.code is None else fault.code
        return error(code, fault.message, fault.data)
    return Answer(None, sent)


def with_member(raw: Raw, name: str, value: bytes) -> Raw:
    """The object with one more member at its front, if it has none of that name."""
    known = members(raw)
    if known is None or name in known:
        return raw
    text = bytes(raw).strip()
    comma = b"," if known else b""
    return Raw(b'{"%b":%b%b%b' % (name.encode(), value, comma, text[1:].lstrip()))
