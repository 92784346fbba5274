"""One HTTP exchange on the server's side: `Exchange`, and `Tunnel` for what comes after HTTP.

Owns: the request's body as it is read and the response's framing as it is written, exactly one
framing a response. Rule: nothing is added to what the handler sends but that framing and
`Connection: close`. Made by httpserver, handed to its handler.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Protocol

import anyio

from bridge.io.sockets import Part
from bridge.wire import http_body, http_head
from bridge.wire.http_head import Headers

REASONS = {int(status): status.phrase.encode() for status in HTTPStatus}
_DRAIN = 1 << 20
_CLOSE = (b"Connection", b"close")


class TooLarge(ValueError):
    """The request's body is over the limit given to `read`."""


class Answered(RuntimeError):
    """The handler's calls do not make one whole response: a fault in the handler."""


class Channel(Protocol):
    """What an exchange needs of its connection."""

    tunnelled: bool

    async def take(self) -> bytes:
        """The next bytes from the client; `b""` when it has left."""
        ...

    def put_back(self, data: bytes) -> None:
        """Bytes taken that belong to what comes next."""
        ...

    def write(self, *parts: bytes) -> list[Part]:
        """Writes what goes out at once; what does not. Raises BrokenResourceError."""
        ...

    async def send(self, *parts: Part) -> None:
        """Writes to the client. Raises BrokenResourceError when it has left."""
        ...


class Exchange:
    """One request and its response.

    `method`, `target` (bytes, as sent), `headers` (pairs as sent); the body is either iterated
    (`async for chunk in exchange.body`, the client being held back as the handler is slow) or read
    whole (`await exchange.read(limit)`). The response is either `respond`, or `start`, `send`...,
    `finish`. Sending raises BrokenResourceError when the client has left; usually the handler has
    been cancelled before.
    """

    __slots__ = (
        *("method", "target", "version", "headers", "fields", "length", "framing", "keep_alive"),
        *("status", "whole", "_channel", "_body", "_rest", "_asked", "_to_the_end", "_chunked"),
        "_left",
    )

    def __init__(self, channel: Channel, request: http_head.Request, rest: bytes = b"") -> None:
        self._channel = channel
        self.method, self.target, self.version = request.method, request.target, request.version
        self.headers, self.fields = request.headers, request.fields
        self.length = request.length if request.framing == "length" else None
        """The body's length if the client announced it."""
        self.framing = request.framing
        self.keep_alive = request.keep_alive
        self._body = http_body.body(request.framing, request.length)
        self._rest = rest
        if rest and self._body.done:
            self._rest = b""
            channel.put_back(rest)
        self._asked = False
        self.status: int | None = None
        """The status answered, None before."""
        self.whole = False
        """Whether the response has been sent to its end."""
        self._to_the_end = False
        self._chunked = False
        self._left: int | None = None

    @property
    def path(self) -> str:
        """The target without its query, undecoded."""
        return self.target.partition(b"?")[0].decode("latin-1")

    def header(self, name: bytes) -> bytes | None:
        """A request header's value, of repeated ones joined by `,`; `name` in lower case."""
        return self.fields.get(name)

    @property
    def cut(self) -> bool:
        """Whether the response is under way and only the stream's end would tell where it ends."""
        return self._to_the_end and not self.whole

    @property
    def body(self) -> "RequestBody":
        """The request's body as it comes, decoded from its framing."""
        return RequestBody(self)

    @property
    def trailers(self) -> Headers:
        """The trailers of a chunked body, known at its end."""
        return self._body.trailers

    async def receive(self) -> bytes | None:
        """The next bytes of the body, None at its end.

        Raises BadBody for broken framing (unhandled, that is answered with 400) and
        BrokenResourceError when the client has left.
        """
        while not self._body.done:
            if self._rest:
                data, self._rest = self._rest, b""
            else:
                if not self._asked:
                    await self._ask()
                data = await self._channel.take()
            if not data:
                raise anyio.BrokenResourceError("the client left")
            try:
                piece = self._body.feed(data)
            except http_body.BadBody:
                self.keep_alive = False
                raise
            if piece.rest:
                self._channel.put_back(piece.rest)
            if piece.data:
                return piece.data
        return None

    async def _ask(self) -> None:
        """Tells a client that waits for it to send the body."""
        self._asked = True
        if self.expects_continue and self.status is None:
            await self._channel.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    @property
    def expects_continue(self) -> bool:
        """Whether the client sends the body only when it is told to."""
        expected = self.fields.get(b"expect")
        return expected is not None and bool(self.version) and expected.lower() == b"100-continue"

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises TooLarge over the limit; unhandled, that is answered with 413."""
        return bytes(await self.collect(limit))

    async def collect(self, limit: int) -> bytes | bytearray:
        """The whole body, as `read`, without the copy that makes it `bytes`: for large ones."""
        if self.length is not None and self.length > limit:
            self.keep_alive = False
            raise TooLarge(f"a body of {self.length} bytes is over the limit of {limit}")
        first = None if self._body.done else await self.receive()
        if first is None or (self._body.done and len(first) <= limit):
            return first or b""
        # Grown in place: parts and their sum would be held twice.
        body = bytearray(first)
        while (data := await self.receive()) is not None:
            body += data
            if len(body) > limit:
                break
        if len(body) > limit:
            self.keep_alive = False
            raise TooLarge(f"a body of more than {limit} bytes is over the limit")
        return body

    async def respond(self, status: int, headers: Headers, body: bytes = b"") -> None:
        """A whole response; Content-Length is set, and to a HEAD request no body is sent."""
        if status not in (204, 304) and http_head.find(headers, b"content-length") is None:
            headers = [*headers, (b"Content-Length", b"%d" % len(body))]
        if self.method == "HEAD":
            body = b""
        await self.start(status, headers, first=body)
        await self.finish()

    async def start(
        self,
        status: int,
        headers: Headers,
        *,
        reason: bytes | None = None,
        first: bytes = b"",
        framed: bool = False,
    ) -> None:
        """Sends the head, and `first` with it.

        The body is framed by Content-Length if that is among the headers, else chunked (to an
        HTTP/1.0 client: by closing). With `framed`, the headers say how the body is framed and
        `first` and what `send` gets have that framing already: a relay's way.
        """
        if self.status is not None:
            raise Answered("a second response to one request")
        length = None if framed else http_head.find(headers, b"content-length")
        bodiless = self.method == "HEAD" or status < 200 or status in (204, 304)
        self._left = 0 if bodiless else int(length) if length is not None else None
        self._chunked = not framed and self._left is None and self.version == 1
        self._to_the_end = not framed and self._left is None and not self._chunked
        headers = list(headers)
        if self._chunked:
            headers.append((b"Transfer-Encoding", b"chunked"))
        if self._to_the_end:
            self.keep_alive = False
        if not self.keep_alive and status != 101:
            headers.append(_CLOSE)
        self.status = status
        head = http_head.response_bytes(
            status, REASONS.get(status, b"") if reason is None else reason, headers
        )
        if rest := self._channel.write(head, *(self._frame(first) if first else ())):
            await self._channel.send(*rest)

    async def relay(self, status: int, head: bytes, first: bytes) -> None:
        """Sends a head as it stands, and `first` with it; the body, which has the framing that the
        head names already, goes by `send`. Only where nothing has to be added: see `keep_alive`.
        """
        if self.status is not None:
            raise Answered("a second response to one request")
        self.status = status
        if rest := self._channel.write(head, first):
            await self._channel.send(*rest)

    async def send(self, data: bytes) -> None:
        """Sends a part of the body, at once."""
        if self.status is None or self.whole:
            raise Answered("no response is open")
        if data and (rest := self._channel.write(*self._frame(data))):
            await self._channel.send(*rest)

    def _frame(self, data: bytes) -> Sequence[bytes]:
        if self._chunked:
            return (b"%x\r\n" % len(data), data, b"\r\n")
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise Answered("more bytes than Content-Length announces")
        return (data,)

    async def finish(self, trailers: Headers | None = None) -> None:
        """Ends the response. Raises Answered if it is shorter than its Content-Length."""
        if self.status is None or self.whole:
            raise Answered("no response is open")
        if self._left:
            raise Answered(f"{self._left} bytes less than Content-Length announces")
        if self._chunked:
            await self._channel.send(http_body.last_chunk(trailers or []))
        self.whole = True

    async def inform(self, status: int, headers: Headers) -> None:
        """Sends an interim response (1xx), which HTTP/1.0 clients do not get."""
        if self.version and self.status is None:
            head = http_head.response_bytes(status, REASONS.get(status, b""), headers)
            await self._channel.send(head)

    async def drain(self) -> bool:
        """Whether the rest of the request's body, being short, has been read and dropped."""
        if self._body.done:
            return True
        if not self._asked and self.expects_continue:
            return False
        dropped = 0
        try:
            while dropped < _DRAIN:
                data = await self.receive()
                if data is None:
                    return True
                dropped += len(data)
        except (anyio.BrokenResourceError, http_body.BadBody):
            pass
        return False

    def detach(self) -> "Tunnel":
        """Hands over the connection's raw stream, after `start(101, ...)`. The client's end of
        stream is then the handler's business; the connection is closed when it returns.
        """
        self._channel.tunnelled = True
        if self._rest:
            self._channel.put_back(self._rest)
        self.keep_alive = False
        self.whole = True
        return Tunnel(self._channel)


class RequestBody:
    """`async for` over a request's body."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def __aiter__(self) -> "RequestBody":
        return self

    async def __anext__(self) -> bytes:
        data = await self._exchange.receive()
        if data is None:
            raise StopAsyncIteration
        return data


class Tunnel:
    """The raw stream of a connection that has left HTTP."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def receive(self) -> bytes:
        """The next bytes from the client; `b""` when it has closed its side."""
        return await self._channel.take()

    async def send(self, data: bytes) -> None:
        """Sends bytes. Raises BrokenResourceError."""
        await self._channel.send(data)
