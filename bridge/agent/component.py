"""A component of a proxy chain (ACP's proxy/initialize and proxy/successor): lines in, lines out.

Owns: the requests that are under way through us, by our own ids (`bridge:N`). Rules: what comes
from the client's side goes to the successor in an envelope, what comes from the successor in one
goes to the client's side without; results, errors and params stay as they were; `$/cancel_request`
belongs to one hop, so its id is translated and it is never passed on as it is. Older conductors
are answered in their own spelling: `_proxy/...`, and before it `initialize` with `_meta.proxy` and
`_proxy/successor/request` and `.../notification`. `Component` is sans-IO; `serve` is what
`bridge.cli.acp` runs with --component.
"""

from typing import Any

import anyio
import msgspec

from bridge.agent.active import Note, Policy, Question, Stopped, plain
from bridge.agent.behind import Behind
from bridge.io.pipes import FdReader, FdWriter
from bridge.rpc.connection import LINE_CEILING, Tap
from bridge.wire import codec, jsonrpc
from bridge.wire.codec import Raw
from bridge.wire.json_edit import Path, edit
from bridge.wire.jsonrpc import Malformed, Notification, Request, Response
from bridge.wire.lines import LineFramer

_OLDEST = ("_proxy/successor/request", "_proxy/successor/notification")
_SPELLINGS = {
    "proxy/initialize": ("proxy/successor", "proxy/successor"),
    "_proxy/initialize": ("_proxy/successor", "_proxy/successor"),
    "initialize": _OLDEST,
}
"""The envelope of a request and of a notification, by how a conductor begins."""
_SUCCESSOR = frozenset(name for names in _SPELLINGS.values() for name in names)
_CANCEL = "$/cancel_request"
_LAST_WORDS = 1.0
_PERMISSION = "session/request_permission"


class _Envelope(msgspec.Struct):
    method: str
    params: Raw = Raw(b"null")


class _Answer(msgspec.Struct):
    result: Raw | msgspec.UnsetType = msgspec.UNSET
    error: Raw | msgspec.UnsetType = msgspec.UNSET


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_answer = msgspec.json.Decoder(_Answer).decode


class Component:
    """One place in a chain, on one connection to the conductor."""

    def __init__(
        self,
        policy: Policy | None = None,
        behind: Behind | None = None,
        note: Note | None = None,
    ) -> None:
        self._policy: Policy | None = policy
        self._behind = behind
        self._note = note
        self._stopped = Stopped()
        self._initializing: bytes | None = None
        self._envelopes = _SPELLINGS["proxy/initialize"]
        self._count = 0
        self._asked: dict[bytes, bytes] = {}
        """The ids of requests that came to us, by the ids we gave them."""

    def take(self, line: bytes) -> list[bytes]:
        """What a line of the conductor's leads to."""
        match jsonrpc.parse(line):
            case Request() as request:
                return [self._request(request)]
            case Notification() as notification:
                return self._notification(notification)
            case Response() as response:
                return self._response(response)
            case Malformed() as noise:
                if noise.id is None:
                    return []
                return [jsonrpc.failure(noise.id, jsonrpc.INVALID_REQUEST, noise.reason)]

    def _request(self, request: Request) -> bytes:
        if request.method in _SPELLINGS and _to_a_proxy(request):
            self._envelopes = _SPELLINGS[request.method]
            self._initializing = request.id
            return self._forward(request.id, "initialize", request.params)
        if request.method not in _SUCCESSOR:
            self._stopped.see(request.method, request.params)
            return self._forward(request.id, request.method, request.params)
        try:
            inner = _decode_envelope(request.params)
        except msgspec.DecodeError as error:
            words = f"{request.method}: {error}"
            return jsonrpc.failure(request.id, jsonrpc.INVALID_PARAMS, words)
        if inner.method == _PERMISSION and self._policy is not None:
            return self._decided(request.id, inner)
        ident = self._new(request.id)
        return jsonrpc.request(ident, inner.method, inner.params)

    def _forward(self, ident: bytes, method: str, params: Raw) -> bytes:
        """A request for the successor, in its envelope."""
        return jsonrpc.request(self._new(ident), self._envelopes[0], _enveloped(method, params))

    def _new(self, asked: bytes) -> str:
        self._count += 1
        ident = f"bridge:{self._count}"
        self._asked[codec.encode(ident)] = asked
        return ident

    def _decided(self, ident: bytes, inner: _Envelope) -> bytes:
        try:
            question = codec.decode_as(inner.params, Question)
        except codec.JSONError as error:
            return jsonrpc.failure(ident, jsonrpc.INVALID_PARAMS, f"{inner.method}: {error}")
        policy = self._policy or "deny"
        result = question.answered(ident, policy, self._stopped, self._note)
        return jsonrpc.result(ident, result)

    def _notification(self, notification: Notification) -> list[bytes]:
        if notification.method == _CANCEL:
            return self._cancelled(notification.params)
        if notification.method not in _SUCCESSOR:
            self._stopped.see(notification.method, notification.params)
            envelope = _enveloped(notification.method, notification.params)
            return [jsonrpc.notification(self._envelopes[1], envelope)]
        try:
            inner = _decode_envelope(notification.params)
        except msgspec.DecodeError:
            return []
        if inner.method == _CANCEL:
            return self._cancelled(inner.params)
        return [jsonrpc.notification(inner.method, inner.params)]

    def _cancelled(self, params: Raw) -> list[bytes]:
        fields: dict[str, Any] = codec.mapping(codec.decode(params)) or {}
        wanted = codec.encode(fields.get("requestId"))
        return [
            jsonrpc.notification(_CANCEL, {"requestId": Raw(ident)})
            for ident, asked in self._asked.items()
            if plain(asked) == wanted
        ]

    def _response(self, response: Response) -> list[bytes]:
        asked = self._asked.pop(plain(response.id), None)
        if asked is None:
            return []
        answer = _decode_answer(response.line)
        if asked == self._initializing:
            self._initializing = None
            if self._behind is not None:
                self._behind.initialized(response.result)
            if self._envelopes is _OLDEST and answer.result is not msgspec.UNSET:
                answer.result = _accepted(answer.result)
        if answer.error is not msgspec.UNSET and bytes(answer.error) != b"null":
            body = b'"error":' + codec.escape_line_ends(bytes(answer.error))
        else:
            result = b"null" if answer.result is msgspec.UNSET else bytes(answer.result)
            body = b'"result":' + codec.escape_line_ends(result)
        return [b'{"jsonrpc":"2.0","id":' + asked + b"," + body + b"}\n"]


def _enveloped(method: str, params: Raw) -> dict[str, Any]:
    """An envelope's content; params that are not there stay so."""
    return {"method": method} if bytes(params) == b"null" else {"method": method, "params": params}


def _to_a_proxy(request: Request) -> bool:
    """Whether an initialize asks us to be a proxy: the oldest spelling says so in `_meta`."""
    if request.method != "initialize":
        return True
    params = codec.mapping(codec.decode(request.params)) or {}
    return (codec.mapping(params.get("_meta")) or {}).get("proxy") is True


def _accepted(result: Raw) -> Raw:
    """The answer to `initialize`, saying that we are a proxy."""
    fields = codec.mapping(codec.decode(result)) or {}
    inside = codec.mapping(fields.get("_meta")) is not None
    wish: dict[Path, bytes | None] = (
        {("_meta", "proxy"): b"true"} if inside else {("_meta",): b'{"proxy":true}'}
    )
    return Raw(b"".join(edit(bytes(result), "component", wish).parts))


async def serve(
    component: Component, behind: Behind, reader: FdReader, writer: FdWriter, tap: Tap | None
) -> None:
    """Serves a conductor until its end of input. `writer` runs in a task of the caller's."""
    framer = LineFramer(LINE_CEILING)

    async def take(line: bytes) -> None:
        for told in component.take(await behind.changed(line)):
            if tap is not None:
                tap("out", told)
            writer.post(told)

    while data := await reader.receive():
        if tap is not None:
            tap("in", data)
        for line in framer.feed(data):
            await take(line)
        await writer.drained()
    if rest := framer.end():
        await take(rest)
    with anyio.move_on_after(_LAST_WORDS):
        await writer.drained()
