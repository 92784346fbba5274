"""One HTTP/1.1 request to an upstream and its response, for a proxy: `Call`.

    pool = Pool(Origin("http", "127.0.0.1", 8000))
    async with Call(pool, "POST", b"/v1/x", headers, [body]) as call:
        head = await call.head()
        while (piece := await call.receive()) is not None: ...
    pool.close()

Rules: a request is sent once; where its answer does not come it is not sent again, since it may
have been acted on. A response ends where its framing says, or it is Cut. Sending and receiving go
on at once: an upstream may answer early, and then stop reading. Used by the model proxy.
"""

import math
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from types import TracebackType

import anyio

from bridge.io.background import Background
from bridge.io.httppool import BROKEN, Cut, Pool, UpstreamError, UpstreamTimeout, Wire
from bridge.io.sockets import Part, after
from bridge.wire import http_body, http_head
from bridge.wire.http_body import BadBody, Piece
from bridge.wire.http_head import BadHead, Headers

Parts = Sequence[Part]
Interim = Callable[[http_head.Response], Awaitable[None]]

_INLINE = 1 << 16


class Call:
    """One request and its response. Left early or by an exception, its connection is closed.

    The headers are complete, Host and framing included; `body`, or `stream` where it is not there
    yet, has that framing already. `interim` gets the 1xx responses but 100 and 101; `idle_timeout`
    is the longest wait for the upstream, in seconds, not counting what the stream lets it wait.
    Entering raises UpstreamError; leaving raises what the stream's iteration raised.
    """

    __slots__ = (
        *("_pool", "_method", "_head", "_parts", "_stream", "_interim", "_idle_timeout", "_wire"),
        *("_tasks", "_sent", "_failure", "_response", "_rest", "_reuse", "_owed", "_waiting"),
    )

    def __init__(
        self,
        pool: Pool,
        method: str,
        target: bytes,
        headers: Headers,
        body: Parts = (),
        *,
        stream: AsyncIterable[Parts] | None = None,
        interim: Interim | None = None,
        idle_timeout: float | None = None,
    ) -> None:
        self._pool = pool
        self._method = method
        if pool.forward is not None:
            target, headers = pool.forward.request(pool.origin, target, headers)
        self._head = http_head.request_bytes(method, target, headers)
        self._parts, self._stream = body, stream
        self._interim = interim
        self._idle_timeout = idle_timeout
        self._wire: Wire | None = None
        self._tasks: Background | None = None
        self._sent = False
        self._failure: Exception | None = None
        self._response: http_body.Body | None = None
        self._rest = b""
        self._reuse = False
        self._owed = True
        """Whether the upstream has to do something: its silence counts only then."""
        self._waiting: anyio.CancelScope | None = None

    async def __aenter__(self) -> "Call":
        if not self._pool.try_enter():
            await self._pool.enter()
        try:
            parts: Parts = [self._head, *self._parts]
            self._wire, done = self._pool.reuse(parts) or await self._pool.open(parts)
            if self._stream is None and done == sum(map(len, parts)):
                self._sent = True
            else:
                await self._send_rest(self._wire, after(parts, done))
        except BaseException:
            self._pool.leave(self._wire, reuse=False)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        swallowed = False
        try:
            if self._tasks is not None:
                swallowed = await self._tasks.__aexit__(kind, error, trace)
        finally:
            done = self._response is not None and self._response.done
            reuse = done and self._sent and self._reuse and not self._rest
            self._pool.leave(self._wire, reuse=reuse)
        if self._failure is not None:
            raise self._failure
        return swallowed

    async def _send_rest(self, wire: Wire, parts: Parts) -> None:
        """Sends what did not go out at once: in a task, if that can take long."""
        if self._stream is None and sum(map(len, parts)) <= _INLINE:
            await self._send(wire, parts)
        else:
            self._tasks = await Background().__aenter__()
            self._tasks.start(self._send, wire, parts)

    async def _send(self, wire: Wire, parts: Parts) -> None:
        """Sends the parts, and the body if it comes in a stream.

        That the connection broke is told by who receives: there may be an answer that says why.
        """
        try:
            await wire.send(*parts)
            if self._stream is not None:
                self._owe(False)
                async for more in self._stream:
                    self._owe(True)
                    try:
                        await wire.send(*more)
                    except BROKEN:
                        return
                    self._owe(False)
                self._owe(True)
            self._sent = True
        except BROKEN:
            pass
        except Exception as error:  # noqa: BLE001 - the body's, raised where the call is left
            self._failure = error
            if self._tasks is not None:
                self._tasks.cancel()

    async def head(self) -> http_head.Response:
        """The response's head. Raises UpstreamError, UpstreamTimeout."""
        assert self._wire is not None
        data = self._rest
        try:
            looked_at = 0
            while True:
                if not (end := http_head.find_end(data, looked_at)):
                    http_head.check_response(data)
                    looked_at = len(data)
                    more = await (self._more() if self._idle_timeout else self._wire.receive())
                    if not more:
                        raise self._error("closed the connection without an answer")
                    data += more
                    continue
                looked_at = 0
                response = http_head.parse_response(data[:end], self._method)
                data = data[end:]
                if response.status >= 200 or response.status == 101:
                    break
                if response.status != 100 and self._interim is not None:
                    await self._interim(response)
        except BROKEN as error:
            raise self._error(f"broke the connection before an answer: {error}") from None
        except BadHead as error:
            raise self._error(f"sent a broken head: {error}") from None
        self._rest = data
        forward = self._pool.forward
        if forward is not None and forward.refuses(self._pool.origin, response.status):
            raise self._error(f"is behind {forward}, which wants credentials (407)")
        if response.status != 101:
            self._response = http_body.body(response.framing, response.length)
            self._reuse = response.keep_alive
        return response

    def ready(self) -> Piece | None:
        """What of the body has come already: None if nothing has. Raises Cut."""
        if not self._rest or self._response is None or self._response.done:
            return None
        data, self._rest = self._rest, b""
        return self._feed(data)

    async def receive(self) -> Piece | None:
        """The next piece of the body, None at its end. Raises Cut, UpstreamTimeout."""
        if self._response is None or self._response.done:
            return None
        if self._rest:
            return self.ready()
        assert self._wire is not None
        try:
            data = await (self._more() if self._idle_timeout else self._wire.receive())
        except BROKEN as error:
            raise Cut(f"{self._pool.origin} broke the connection: {error}") from None
        if data:
            return self._feed(data)
        try:
            self._response.eof()
        except BadBody as error:
            raise Cut(f"{self._pool.origin} closed the connection: {error}") from None
        return None

    @property
    def ended(self) -> bool:
        """Whether the body has come to its end."""
        return self._response is not None and self._response.done

    @property
    def trailers(self) -> Headers:
        """The trailers of a chunked body that has ended."""
        return self._response.trailers if self._response is not None else []

    def _feed(self, data: bytes) -> Piece:
        assert self._response is not None
        try:
            piece = self._response.feed(data)
        except BadBody as error:
            raise Cut(f"{self._pool.origin}: {error}") from None
        self._rest = piece.rest
        return piece

    async def receive_raw(self) -> bytes:
        """After a 101: the next bytes, `b""` at the end. Raises BrokenResourceError."""
        if self._rest:
            data, self._rest = self._rest, b""
            return data
        return await self._more()

    async def send_raw(self, data: bytes) -> None:
        """After a 101: sends bytes. Raises BrokenResourceError."""
        assert self._wire is not None
        await self._wire.send(data)

    async def _more(self) -> bytes:
        assert self._wire is not None
        if self._idle_timeout is None:
            return await self._wire.receive()
        with anyio.CancelScope(deadline=self._deadline()) as self._waiting:
            return await self._wire.receive()
        raise UpstreamTimeout(f"nothing from {self._pool.origin} for {self._idle_timeout:g} s")

    def _owe(self, owed: bool) -> None:
        self._owed = owed
        if self._waiting is not None:
            self._waiting.deadline = self._deadline()

    def _deadline(self) -> float:
        """When the upstream has been silent for too long."""
        if self._idle_timeout is None or not self._owed:
            return math.inf
        return anyio.current_time() + self._idle_timeout

    def _error(self, words: str) -> UpstreamError:
        return UpstreamError(f"{self._pool.origin} {words}")
