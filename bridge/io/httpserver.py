"""An HTTP/1.1 server: `listen`, then `server.serve(handler)`; an `Exchange` is one request.

    async with listen("127.0.0.1", 0) as server:
        print(server.port)
        await server.serve(handler)           # until cancelled

    async def handler(exchange: Exchange) -> None:
        text = await exchange.read(1 << 20)
        await exchange.respond(200, [(b"Content-Type", b"text/plain")], text)

Owns: connections, one task to read each and one to handle its requests in order. Rules: a client
that closes, be it only its sending side, has left: its handler is cancelled, at whatever await it
stands. A handler that raises, or leaves an answer unfinished, breaks the connection: what was not
whole never ends cleanly. Malformed heads never reach a handler (400, connection closed).
Nothing is added to what a handler sends but the framing of the body and `Connection: close`.
Used by the model proxy and the MCP endpoint.
"""

import contextlib
import socket
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import NoReturn

import anyio

from bridge.io.exchange import REASONS, Exchange, TooLarge
from bridge.io.sockets import Socket, bind
from bridge.log import log
from bridge.wire import codec, http_head
from bridge.wire.http_body import BadBody
from bridge.wire.http_head import BadHead

Handler = Callable[[Exchange], Awaitable[None]]
Refuse = Callable[[int, str, bytes], bytes]

_HIGH, _STALLED = 1 << 20, 16 << 20
_LINGER_SECONDS, _LINGER_BYTES = 2.0, 64 << 20
_LOOK = 0.5


def json_error(status: int, message: str, target: bytes = b"") -> bytes:
    """What a refused request is told, unless `serve` was given words of its own."""
    code = "bad_request" if status == 400 else REASONS.get(status, b"").decode()
    return codec.encode({"error": {"message": message, "type": "bridge_error", "code": code}})


@contextlib.asynccontextmanager
async def listen(
    host: str = "127.0.0.1", port: int = 0, *, allow_remote: bool = False
) -> AsyncGenerator["Server"]:
    """A server whose socket listens (clients may connect; they are served from `serve` on).

    Raises UsageError for an address off the loopback unless `allow_remote`.
    """
    server = Server(bind(host, port, allow_remote=allow_remote))
    try:
        yield server
    finally:
        server.close()


class Server:
    """A listening socket, from `bind`; owns it. `host` and `port` are those it is bound to."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.host, self.port = sock.getsockname()[:2]

    def close(self) -> None:
        """Stops listening."""
        if self._sock.fileno() >= 0:
            anyio.notify_closing(self._sock.fileno())
            self._sock.close()

    async def serve(self, handler: Handler, *, refuse: Refuse = json_error) -> NoReturn:
        """Serves until cancelled, which breaks every open connection.

        `refuse` makes the JSON body for a request that is refused without its handler, of
        (status, what is wrong, the target as far as it could be read).
        """
        async with anyio.create_task_group() as tasks:
            while True:
                try:
                    accepted, _ = self._sock.accept()
                except BlockingIOError:
                    await anyio.wait_readable(self._sock.fileno())
                    continue
                except OSError as error:
                    # The client left before it was accepted, or no descriptor is free.
                    log.warning("accept: %s", error)
                    await anyio.sleep(0.05)
                    continue
                connection = _Connection(Socket(accepted), handler, refuse)
                tasks.start_soon(connection.run)
        raise AssertionError


class _Connection:
    """One client: `_read` fills `_chunks`, `_serve` empties it; the socket's owner."""

    def __init__(self, sock: Socket, handler: Handler, refuse: Refuse) -> None:
        self._sock = sock
        self._handler, self._refuse = handler, refuse
        self._chunks: deque[bytes] = deque()
        self._held, self._high = 0, _HIGH
        self._data, self._room = anyio.Event(), anyio.Event()
        self._exchange: Exchange | None = None
        self.eof = False
        self.tunnelled = False

    async def run(self) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, tasks.cancel_scope)
                await self._serve()
                tasks.cancel_scope.cancel()
        finally:
            # Of a body that ends with the stream, a plain close would look like the end.
            cut = self._exchange is not None and self._exchange.cut
            self._sock.reset() if cut else self._sock.close()

    async def _read(self, scope: anyio.CancelScope) -> None:
        try:
            while data := await self._sock.receive():
                self._chunks.append(data)
                self._held += len(data)
                self._data.set()
                if self._held >= self._high and not await self._has_room():
                    break
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        self.eof = True
        self._data.set()
        if not self.tunnelled:
            scope.cancel()

    async def _has_room(self) -> bool:
        """Waits until what is held has been taken; false when the client left meanwhile.

        While nothing is read, its leaving hides behind the bytes it had still sent. So when the
        handler stalls, as many are taken in as the two kernels can hold.
        """
        while self._held >= self._high:
            self._room = anyio.Event()
            with anyio.move_on_after(_LOOK):
                await self._room.wait()
                continue
            if self._sock.left() and not self.tunnelled:
                return False
            self._high = _STALLED
        return True

    async def take(self) -> bytes:
        """The next bytes from the client; `b""` when it has left."""
        while not self._chunks:
            if self.eof:
                return b""
            self._data = anyio.Event()
            await self._data.wait()
        data = self._chunks.popleft()
        self._held -= len(data)
        if self._held < _HIGH:
            self._high = _HIGH
            self._room.set()
        return data

    async def send(self, *parts: bytes) -> None:
        """Writes to the client. Raises BrokenResourceError when it has left."""
        try:
            await self._sock.send(*parts)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            self.eof = True
            raise anyio.BrokenResourceError("the client left") from error

    def put_back(self, data: bytes) -> None:
        if data:
            self._chunks.appendleft(data)
            self._held += len(data)

    async def _serve(self) -> None:
        """The connection's requests, one after the other."""
        while (request := await self._next_head()) is not None:
            exchange = self._exchange = Exchange(self, request)
            await self._handle(exchange)
            if not exchange.whole:
                return
            if not exchange.keep_alive or not await exchange.drain():
                await self._linger()
                return

    async def _handle(self, exchange: Exchange) -> None:
        """Runs the handler, and answers for it if it fails before it answered."""
        status, message = 500, "internal error"
        try:
            await self._handler(exchange)
        except TooLarge as error:
            status, message = 413, str(error)
        except BadBody as error:
            status, message = 400, str(error)
        except Exception as error:  # noqa: BLE001 - the server outlives any handler
            if not self.eof:
                log.error("a handler failed: %r", error, exc_info=error)
        if exchange.status is None:
            exchange.keep_alive = False
            body = self._refuse(status, message, exchange.target)
            with contextlib.suppress(anyio.BrokenResourceError):
                await exchange.respond(status, [(b"Content-Type", b"application/json")], body)

    async def _next_head(self) -> http_head.Request | None:
        """The next request's head; None when there is none, or none that can be answered."""
        data = await self.take()
        try:
            while True:
                while data.startswith(b"\r\n"):
                    data = data[2:]
                end = data.find(b"\r\n\r\n") + 4
                if end >= 4:
                    break
                http_head.check_part(data[:-1] if data[-1:] == b"\r" else data)
                more = await self.take()
                if not more:
                    return None
                data += more
            request = http_head.parse_request(data[:end])
        except BadHead as error:
            words = data.partition(b"\n")[0].split(b" ")
            await self._refuse_head(error, words[1] if len(words) > 1 else b"")
            return None
        self.put_back(data[end:])
        return request

    async def _refuse_head(self, error: BadHead, target: bytes) -> None:
        body = self._refuse(error.status, str(error), target)
        head = http_head.response_bytes(
            error.status,
            REASONS[error.status],
            [
                (b"Content-Type", b"application/json"),
                (b"Content-Length", b"%d" % len(body)),
                (b"Connection", b"close"),
            ],
        )
        with contextlib.suppress(anyio.BrokenResourceError):
            await self.send(head, body)
            await self._linger()

    async def _linger(self) -> None:
        """Closes so that the client can read the answer: not while it is still sending, since the
        kernel would answer that with a reset, which can destroy what it has not read yet.
        """
        self._sock.end()
        dropped = 0
        with anyio.move_on_after(_LINGER_SECONDS):
            while dropped < _LINGER_BYTES and (data := await self.take()):
                dropped += len(data)
