"""A modern caller's POST, opened: who calls, for what, and whether headers and body agree.

Rule: checked in the order of the specification, the first fault answers; a request that passes is
as good as one on stdio. Source: MCP 2026-07-28, transports, "Request headers". Pure. Called by
`http_front`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bridge.mcp import eras, messages, mirrored
from bridge.mcp.eras import Client
from bridge.wire import codec, jsonrpc
from bridge.wire.codec import Raw
from bridge.wire.http_head import Headers
from bridge.wire.jsonrpc import Malformed, Notification, Request

_STATUS = {
    jsonrpc.PARSE_ERROR: 400,
    jsonrpc.INVALID_REQUEST: 400,
    jsonrpc.INVALID_PARAMS: 400,
    jsonrpc.METHOD_NOT_FOUND: 404,
    eras.HEADER_MISMATCH: 400,
    eras.MISSING_CAPABILITY: 400,
    jsonrpc.UNSUPPORTED_VERSION: 400,
}
_ROUTING = ("mcp-protocol-version", "mcp-method", "mcp-name")


class Refusal(NamedTuple):
    """Why a request is not carried out."""

    code: int
    message: str
    id: bytes = b"null"

    @property
    def status(self) -> int:
        return _STATUS.get(self.code, 200)


class Opened(NamedTuple):
    """A request that may be carried out, and its headers by lower-case name."""

    request: Request
    client: Client
    headers: Mapping[str, Sequence[str]]


def is_modern(body: bytes) -> bool:
    """Whether a body says by itself that it is of the modern era (its headers being wrong)."""
    if eras.VERSION_KEY.encode() not in body:
        return False
    message = jsonrpc.parse(body)
    params = messages.members(message.params) if isinstance(message, Request) else None
    meta = messages.members(params["_meta"]) if params is not None and "_meta" in params else None
    if meta is None or eras.VERSION_KEY not in meta:
        return False
    return codec.decode(meta[eras.VERSION_KEY]) not in eras.LEGACY_VERSIONS


def status_of(answer: bytes) -> int:
    """The HTTP status of a plain answer: some errors have one of their own."""
    if b'"error"' not in answer[:400]:
        return 200
    message = jsonrpc.parse(answer)
    if isinstance(message, jsonrpc.Response) and message.error is not None:
        return _STATUS.get(message.error.code or 0, 200)
    return 200


def opened(body: bytes, sent: Headers) -> Opened | Notification | Refusal:
    """What a POST is; its `sent` headers as they came."""
    message = jsonrpc.parse(body)
    if isinstance(message, Notification):
        return message
    if not isinstance(message, Request):
        code, reason = jsonrpc.INVALID_REQUEST, "a response"
        if isinstance(message, Malformed):
            code, reason = message.code, message.reason
        return Refusal(code, f"the body must be one request or notification ({reason})")
    headers: dict[str, list[str]] = {}
    for name, value in sent:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    for name in _ROUTING:
        if len(headers.get(name, ())) > 1:
            return Refusal(eras.HEADER_MISMATCH, f"{name} appears more than once", message.id)
    params = messages.members(message.params) or {}
    meta = messages.members(params.get("_meta", Raw(b"null")))
    client = "params._meta must be an object" if meta is None else eras.caller_of(meta)
    if isinstance(client, str):
        return Refusal(jsonrpc.INVALID_PARAMS, client, message.id)
    wrong = _mismatch(message, params, client, headers)
    if wrong is not None:
        return Refusal(eras.HEADER_MISMATCH, wrong, message.id)
    return Opened(message, client, headers)


def _mismatch(
    request: Request,
    params: messages.Members,
    client: Client,
    headers: Mapping[str, Sequence[str]],
) -> str | None:
    """Where headers and body say different things."""
    if headers.get("mcp-protocol-version") != [client.version]:
        return "the MCP-Protocol-Version header does not match the request's _meta"
    if headers.get("mcp-method") != [request.method]:
        return "the Mcp-Method header does not match the request's method"
    key = mirrored.NAMED_BY.get(request.method)
    named = codec.decode(params[key]) if key is not None and key in params else None
    if named is None:
        return None
    said = headers.get("mcp-name", [""])[0]
    if mirrored.unwrap(said) != named:
        return f"the Mcp-Name header does not match the request's {key}"
    return None
