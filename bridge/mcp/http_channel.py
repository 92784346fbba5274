"""Streamable HTTP as a channel: a POST a message, an answer as JSON or as a stream of events.

Owns: one session's id, version and cookies, and the resumption of a stream that broke. Rules: an
HTTP status without a JSON-RPC answer to our own id is a failure; with one it is an answer whatever
the status; a result over the ceiling is refused, not cut. Source: MCP transports, "Streamable
HTTP", 2025-03-26 to 2026-07-28. Called by `bridge.mcp.server`.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.abc import TaskGroup

from bridge.mcp import eras, messages
from bridge.mcp.channel import Fault, Outgoing, Sink, nobody
from bridge.mcp.messages import Answer
from bridge.mcp.origin import Broken, Headers, Origin, Reply
from bridge.rules import retry
from bridge.wire import jsonrpc
from bridge.wire.jsonrpc import Notification, Request, Response
from bridge.wire.sse import Parser, SSEError

_ACCEPT = ("Accept", "application/json, text/event-stream")
_JSON = ("Content-Type", "application/json")
_EVENTS = "text/event-stream"
_ERROR_BODY = 1 << 20
_SHOWN = 300
_DRAIN = 0.25
_RESUMPTIONS = 3
_RECONNECTION = 1.0
_SHORTEST_RECONNECTION, _LONGEST_RECONNECTION = 0.05, 30.0


class HttpChannel:
    """One session with a streamable HTTP server."""

    cancels_by_closing = True
    has_own_stream = True

    def __init__(self, origin: Origin, ceiling: int, sink: Sink, tasks: TaskGroup) -> None:
        self.version: str | None = None
        self._origin = origin
        self._ceiling = ceiling
        self._sink = sink
        self._tasks = tasks
        self._session_id: str | None = None
        self._cookies: dict[str, str] = {}
        self._last: Reply | None = None

    # -- requests -------------------------------------------------------------------------------

    async def exchange(self, request: Outgoing) -> Answer:
        await self._let_go()
        async with self._post(request.body, request) as reply:
            self._remember(reply)
            answer = await self._answer(reply, request)
            # Its last bytes are read later: the answer does not wait for them.
            self._last = reply
            return answer

    async def send(self, message: bytes) -> None:
        async with self._post(message, None) as reply:
            if reply.status >= 300:
                raise self._failure(reply, False, await reply.receive())
            with anyio.move_on_after(_DRAIN):
                await self._drain(reply)

    @asynccontextmanager
    async def _post(self, body: bytes, request: Outgoing | None) -> AsyncGenerator[Reply]:
        """The reply to a POST, closed at the end unless it is kept as the last one."""

        def written() -> None:
            if request is not None:
                request.written = True

        headers = [*self._headers(), _JSON, *(request.headers if request is not None else ())]
        reply = await self._open("POST", headers, body, written, request)
        try:
            yield reply
        except Broken as error:
            raise self._broken(request, error) from None
        finally:
            if reply is not self._last:
                await reply.close()

    async def _open(
        self,
        method: str,
        headers: Headers,
        body: bytes,
        written: Callable[[], None],
        request: Outgoing | None,
    ) -> Reply:
        try:
            return await self._origin.open(
                method,
                headers,
                body,
                tasks=self._tasks,
                written=written,
                rpc=None if request is None else request.id,
            )
        except Broken as error:
            raise self._broken(request, error) from None

    def _broken(self, request: Outgoing | None, error: Broken) -> Fault:
        if error.connecting:
            return Fault("connect", str(error))
        if error.final:
            return Fault("rejected", str(error))
        return Fault("opening", str(error)) if request is None else request.fault(str(error))

    def _headers(self) -> Headers:
        headers: Headers = [_ACCEPT]
        if self.version is not None:
            headers.append(("MCP-Protocol-Version", self.version))
        if self._session_id is not None:
            headers.append(("Mcp-Session-Id", self._session_id))
        if self._cookies:
            pairs = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
            headers.append(("Cookie", pairs))
        return headers

    def _remember(self, reply: Reply) -> None:
        """The session's id and its cookies (a balancer's, that keep it at one server)."""
        if self._session_id is None and reply.status < 300 and self.version != eras.MODERN:
            self._session_id = reply.header("mcp-session-id") or None
        for line in reply.all("set-cookie"):
            name, _, value = line.partition(";")[0].strip().partition("=")
            if name and value:
                self._cookies[name] = value
            else:
                self._cookies.pop(name, None)

    # -- answers --------------------------------------------------------------------------------

    async def _answer(self, reply: Reply, request: Outgoing) -> Answer:
        if reply.status >= 300:
            return await self._answer_in_error(reply, request)
        if reply.kind == _EVENTS:
            return await self._answer_in_stream(reply, request)
        # What it is called matters less than what it is: an answer to our own id is one.
        return await self._answer_in_body(reply, request)

    async def _answer_in_body(self, reply: Reply, request: Outgoing) -> Answer:
        parts: list[bytes] = []
        broken: Broken | None = None
        try:
            await self._read(reply, request, self._ceiling, parts)
        except Broken as error:
            broken = error
        # An answer that is whole is one, however its connection ended.
        body = b"".join(parts)
        if (answer := await self._take(body, request)) is not None:
            return answer
        if broken is not None:
            raise broken
        if not body.strip():
            raise request.fault(f"HTTP {reply.status} without a body")
        what = f"HTTP {reply.status}" + (f" with {reply.kind}" if reply.kind else "")
        raise request.fault(f"the answer is not readable: {what}{_excerpt(body, ': ')}")

    async def _answer_in_error(self, reply: Reply, request: Outgoing) -> Answer:
        """An answer at any status, if it is one to our own id; else the failure it is."""
        parts: list[bytes] = []
        with suppress(Broken, Fault):
            await self._read(reply, request, _ERROR_BODY, parts)
        body = b"".join(parts)
        if body.lstrip()[:1] in (b"{", b"["):
            answer = await self._take(body, request)
            if answer is not None:
                return answer
        raise self._failure(reply, request.counted and request.written, body)

    def _failure(self, reply: Reply, written: bool, body: bytes) -> Fault:
        in_session = self._session_id is not None
        kind = retry.from_status(reply.status, written=written, in_session=in_session)
        detail = f"HTTP {reply.status}{_excerpt(body, ': ')}"
        return Fault(kind, detail, retry_after=reply.retry_after, status=reply.status)

    async def _read(
        self, reply: Reply, request: Outgoing, ceiling: int, parts: list[bytes]
    ) -> None:
        """The body, into `parts`: what came of one that breaks off is there too."""
        size = 0
        while data := await reply.receive():
            parts.append(data)
            size += len(data)
            if size > ceiling:
                raise request.too_large(self._ceiling)

    async def _take(self, data: bytes, request: Outgoing) -> Answer | None:
        """Hands on what a body or an event holds; the answer, if it is in it: the first one."""
        found: Answer | None = None
        for line in messages.sent(data):
            message = jsonrpc.parse(line)
            if isinstance(message, Request | Notification):
                await self._sink(message)
            elif isinstance(message, Response) and request.owns(message):
                found = found or messages.answer(message)
        return found

    # -- streams --------------------------------------------------------------------------------

    async def _answer_in_stream(self, reply: Reply, request: Outgoing) -> Answer:
        parser = Parser(self._ceiling)
        why = ""
        try:
            if (answer := await self._events(reply, parser, request)) is not None:
                return answer
            why = "the stream ended before the answer came"
        except Broken as error:
            if error.final:
                raise
            why = f"the stream broke before the answer came ({error})"
        # The last event may be whole and only lack its end.
        if (answer := await self._take(parser.rest, request)) is not None:
            return answer
        if self.version != eras.MODERN and parser.last_id:
            await reply.close()
            if (answer := await self._resumed(parser, request)) is not None:
                return answer
            why += ", and could not be resumed"
        raise request.fault(why)

    async def _events(self, reply: Reply, parser: Parser, request: Outgoing) -> Answer | None:
        while data := await reply.receive():
            try:
                events = parser.feed(data)
            except SSEError:
                raise request.too_large(self._ceiling) from None
            answer: Answer | None = None
            for event in events:
                if event.name == "message" and event.data:
                    taken = await self._take(event.data, request)
                    answer = answer or taken
            if answer is not None:
                return answer
        return None

    async def _resumed(self, parser: Parser, request: Outgoing) -> Answer | None:
        """Follows a stream over its interruptions, as long as it goes on: a server may end it in
        order again and again while it works, to be asked for the rest later (2025-11-25)."""
        failed = 0
        last_id, pause = parser.last_id, parser.reconnection_ms
        while failed < _RESUMPTIONS:
            seconds = _RECONNECTION if pause is None else pause / 1000
            await anyio.sleep(min(max(seconds, _SHORTEST_RECONNECTION), _LONGEST_RECONNECTION))
            failed += 1
            try:
                reply = await self._get([("Last-Event-ID", last_id)])
            except Broken:
                continue
            try:
                if reply.status != 200 or reply.kind != _EVENTS:
                    return None
                parser = Parser(self._ceiling)
                with suppress(Broken):
                    if (answer := await self._events(reply, parser, request)) is not None:
                        return answer
                    failed = 0
            finally:
                await reply.close()
            if parser.last_id and parser.last_id != last_id:
                last_id, failed = parser.last_id, 0
            pause = pause if parser.reconnection_ms is None else parser.reconnection_ms
        return None

    async def _get(self, more: Headers) -> Reply:
        headers = [pair for pair in self._headers() if pair is not _ACCEPT]
        headers = [("Accept", _EVENTS), *headers, *more]
        return await self._origin.open("GET", headers, b"", tasks=self._tasks)

    async def listen(self, ready: Callable[[], None]) -> None:
        if self._origin.deaf:
            return
        try:
            reply = await self._get([])
        except Broken as error:
            raise Fault("opening", str(error)) from None
        try:
            if reply.status != 200 or reply.kind != _EVENTS:
                # It will not have one for the next session either.
                self._origin.deaf = reply.status in (404, 405, 501)
                return
            ready()
            parser = Parser(self._ceiling)
            with suppress(Broken):
                await self._events(reply, parser, nobody())
        finally:
            await reply.close()

    # -- the end --------------------------------------------------------------------------------

    async def _let_go(self) -> None:
        """Reads the last reply to its end, so that its connection can be used again."""
        reply, self._last = self._last, None
        if reply is not None:
            try:
                with anyio.move_on_after(_DRAIN), suppress(Broken):
                    await self._drain(reply)
            finally:
                await reply.close()

    async def _drain(self, reply: Reply) -> None:
        while await reply.receive():
            pass

    async def end(self) -> None:
        await self._let_go()
        session_id = self._session_id
        if session_id is not None and self.version != eras.MODERN:
            headers = self._headers()
            self._session_id = None
            with suppress(Broken):
                reply = await self._origin.open("DELETE", headers, b"", tasks=self._tasks)
                await reply.close()


def _excerpt(body: bytes, before: str = "") -> str:
    """The beginning of a body, for an error's words."""
    text = " ".join(body[:_SHOWN].decode(errors="replace").split())
    return f"{before}{text}" if text else ""
