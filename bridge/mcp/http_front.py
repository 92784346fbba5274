"""The agent-facing side over streamable HTTP: mounts by path, sessions by id, both eras.

Owns: who may speak to which mount, and the legacy sessions. Rules: a request that is not for here
never reaches a server; an unknown session id is 404, so that clients open a new one; one caller's
leaving ends its call. Source: MCP transports, "Streamable HTTP". The handler of an
`io.httpserver.Server`; mounts are made by `bridge.mcp.service`.
"""

import secrets
from collections import OrderedDict

import anyio

from bridge.io.exchange import Exchange, Tunnel
from bridge.mcp import envelope, eras, messages, shim
from bridge.mcp.hub import Hub
from bridge.mcp.lines_front import converse
from bridge.mcp.names import segments
from bridge.mcp.peer import Peer
from bridge.mcp.stream import JSON, Stream
from bridge.mcp.view import View
from bridge.wire import http_guard, jsonrpc
from bridge.wire.http_head import Headers
from bridge.wire.jsonrpc import Malformed, Notification, Request, Response

BODY_LIMIT = 256 << 20
_SHIM_PROTOCOL = shim.PROTOCOL.encode()
_MOST_SESSIONS = 10_000
_SESSION_NOT_FOUND = -32001


class Mount:
    """One hub's endpoints: `/mcp` for all servers, `/mcp/SEGMENT` for each, and their sessions."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.segments = segments(hub.servers)
        self._views = {
            f"/mcp/{segment}": View(hub, name) for name, segment in self.segments.items()
        }
        self._views["/mcp"] = View(hub)
        self.sessions: OrderedDict[str, Peer] = OrderedDict()
        self._tunnels: set[anyio.CancelScope] = set()

    def view(self, path: str) -> View | None:
        """The endpoint at a path below the mount's own."""
        return self._views.get(path) or self._views.get(path.rstrip("/"))

    def open(self, peer: Peer) -> str:
        """A new session's id. Beyond a bound the one unused for longest has to go."""
        ident = secrets.token_urlsafe(18)
        self.sessions[ident] = peer
        while len(self.sessions) > _MOST_SESSIONS:
            idle = next((key for key, other in self.sessions.items() if not other.busy), None)
            if idle is None:
                break
            self.close(idle)
        return ident

    def find(self, ident: str, view: View) -> Peer | None:
        peer = self.sessions.get(ident)
        if peer is None or peer.view is not view:
            return None
        self.sessions.move_to_end(ident)
        return peer

    def close(self, ident: str) -> None:
        self.sessions.pop(ident).end()

    async def tunnel(self, view: View, tunnel: Tunnel) -> None:
        """Serves a shim until either side ends it."""
        with anyio.CancelScope() as scope:
            self._tunnels.add(scope)
            try:
                await converse(view, tunnel.receive, tunnel.send)
            finally:
                self._tunnels.discard(scope)

    def end(self) -> None:
        """Ends all sessions; their streams and tunnels end too."""
        for ident in list(self.sessions):
            self.close(ident)
        for scope in self._tunnels:
            scope.cancel()


class HttpFront:
    """`mounts` by their unguessable first path segment."""

    def __init__(self, *, allow_remote: bool = False) -> None:
        self.mounts: dict[str, Mount] = {}
        self._allow_remote = allow_remote

    async def handle(self, exchange: Exchange) -> None:
        """Answers one HTTP request."""
        if not self._allow_remote and not http_guard.is_local(exchange.header(b"host")):
            await _refuse(exchange, 421, "this server answers to its loopback names only")
            return
        if not self._allow_remote and not _is_ours(exchange.header(b"origin")):
            await _refuse(exchange, 403, "no web page of another origin may call this server")
            return
        token, path = http_guard.split(exchange.target)
        mount = self.mounts.get(token)
        view = None if mount is None else mount.view(path.partition(b"?")[0].decode("latin-1"))
        if mount is None or view is None:
            await _refuse(exchange, 404, "no such endpoint")
            return
        version = _header(exchange, b"mcp-protocol-version")
        modern = version != "" and version not in eras.LEGACY_VERSIONS
        if exchange.method == "POST":
            await self._post(exchange, mount, view, modern)
        elif exchange.method == "GET" and not modern:
            await self._get(exchange, mount, view)
        elif exchange.method == "DELETE" and not modern:
            await self._delete(exchange, mount, view)
        else:
            allowed = b"POST" if modern else b"GET, POST, DELETE"
            await exchange.respond(405, [(b"Allow", allowed)])

    # -- POST -----------------------------------------------------------------------------------

    async def _post(self, exchange: Exchange, mount: Mount, view: View, modern: bool) -> None:
        kind = _header(exchange, b"content-type").partition(";")[0].strip().lower()
        if kind not in ("", "application/json"):
            await _refuse(exchange, 415, "the body must be application/json")
            return
        accepted = _header(exchange, b"accept").lower()
        plain = not accepted or "application/json" in accepted or "*/*" in accepted
        streams = not accepted or "text/event-stream" in accepted or "*/*" in accepted
        if not plain and not streams:
            await _refuse(exchange, 406, "accept application/json and text/event-stream")
            return
        body = await exchange.read(BODY_LIMIT)
        stream = Stream(exchange, streams=streams)
        if modern or envelope.is_modern(body):
            await self._modern(exchange, stream, view, body)
        else:
            await self._legacy(exchange, stream, mount, view, body)

    async def _modern(self, exchange: Exchange, stream: Stream, view: View, body: bytes) -> None:
        found = envelope.opened(body, exchange.headers)
        if isinstance(found, envelope.Refusal):
            await _refuse(exchange, found.status, found.message, found.code, found.id)
            return
        if isinstance(found, Notification):
            # There is nothing a modern client could notify us of over HTTP.
            await exchange.respond(202, [])
            return
        peer = Peer(view)
        try:
            async with stream.kept_alive():
                answer = await peer.serve(
                    found.request, stream.send, found.client, headers=found.headers
                )
            await stream.finish(answer, envelope.status_of(answer))
        finally:
            peer.end()

    async def _legacy(
        self, exchange: Exchange, stream: Stream, mount: Mount, view: View, body: bytes
    ) -> None:
        found = [jsonrpc.parse(line) for line in messages.split(body)]
        broken = next((item for item in found if isinstance(item, Malformed)), None)
        if broken is not None:
            await _refuse(exchange, 400, broken.reason, broken.code)
            return
        requests = [item for item in found if isinstance(item, Request)]
        opening = len(found) == 1 and bool(requests) and requests[0].method == "initialize"
        if opening:
            peer = Peer(view)
            answer = await peer.serve(requests[0], stream.send)
            headers: Headers = [JSON]
            if peer.opened:
                headers.append((b"Mcp-Session-Id", mount.open(peer).encode()))
            await exchange.respond(200, headers, answer)
            return
        known = await self._peer(exchange, mount, view)
        if known is None:
            return
        for item in found:
            if isinstance(item, Notification):
                known.notified(item)
            elif isinstance(item, Response):
                known.settled(item)
        if not requests:
            await exchange.respond(202, [])
            return
        async with stream.kept_alive():
            answers = await _all(known, requests, stream)
        if len(found) == 1:
            await stream.finish(answers[0])
        else:
            await stream.finish(b"[" + b",".join(answers) + b"]")

    # -- GET and DELETE -------------------------------------------------------------------------

    async def _get(self, exchange: Exchange, mount: Mount, view: View) -> None:
        if exchange.header(b"upgrade") == _SHIM_PROTOCOL:
            headers = [(b"Connection", b"Upgrade"), (b"Upgrade", _SHIM_PROTOCOL)]
            await exchange.start(101, headers)
            await mount.tunnel(view, exchange.detach())
            return
        peer = await self._peer(exchange, mount, view)
        if peer is None:
            return
        if "text/event-stream" not in _header(exchange, b"accept").lower():
            await _refuse(exchange, 406, "accept text/event-stream")
            return
        stream = Stream(exchange, streams=True)
        await stream.open()
        async with stream.kept_alive():
            await peer.pour(stream.send)
        await stream.end()

    async def _delete(self, exchange: Exchange, mount: Mount, view: View) -> None:
        if await self._peer(exchange, mount, view) is not None:
            mount.close(_header(exchange, b"mcp-session-id"))
            await exchange.respond(204, [])

    async def _peer(self, exchange: Exchange, mount: Mount, view: View) -> Peer | None:
        """The session that a request names; one that names none or an unknown one is refused."""
        ident = _header(exchange, b"mcp-session-id")
        peer = mount.find(ident, view)
        if peer is None and ident:
            await _refuse(exchange, 404, "Session not found", _SESSION_NOT_FOUND)
        elif peer is None:
            await _refuse(exchange, 400, "no Mcp-Session-Id: send initialize first")
        return peer


async def _all(peer: Peer, requests: list[Request], stream: Stream) -> list[bytes]:
    """The answers to a body's requests, in their order; they are carried out side by side."""
    # Who takes no stream cannot be asked anything, whatever it said at initialize.
    client = peer.client if stream.streams else peer.client._replace(capabilities={})
    if len(requests) == 1:
        return [await peer.serve(requests[0], stream.send, client)]
    answers = [b""] * len(requests)

    async def one(index: int, request: Request) -> None:
        answers[index] = await peer.serve(request, stream.send, client)

    async with anyio.create_task_group() as tasks:
        for index, request in enumerate(requests):
            tasks.start_soon(one, index, request)
    return answers


def _header(exchange: Exchange, name: bytes) -> str:
    value = exchange.header(name)
    return "" if value is None else value.decode("latin-1")


def _is_ours(origin: bytes | None) -> bool:
    """Whether a request comes from no web page, or from one of this machine's own."""
    if origin is None:
        return True
    _, _, host = origin.partition(b"://")
    return http_guard.is_local(host)


async def _refuse(
    exchange: Exchange,
    status: int,
    message: str,
    code: int = jsonrpc.INVALID_REQUEST,
    ident: bytes = b"null",
) -> None:
    refusal = messages.response(ident, messages.error(code, message))
    await exchange.respond(status, [JSON], refusal)
