"""An HTTP/1.1 server: `listen`, then `server.serve(handler)`; an `Exchange` is one request.

    async with listen("127.0.0.1", 0) as server:
        print(server.port)
        await server.serve(handler)           # until cancelled

    async def handler(exchange: Exchange) -> None:
        text = await exchange.read(1 << 20)
        await exchange.respond(200, [(b"Content-Type", b"text/plain")], text)

Owns: connections, a task each, which handles its requests in order. Rules: a client that closes,
be it only its sending side, has left: its handler is cancelled within half a second, at whatever
await it stands (one that reads the body gets BrokenResourceError). A handler that raises, or leaves
an answer unfinished, breaks the connection: what was not whole never ends cleanly. Malformed heads
never reach a handler (400, connection closed). Nothing is added to what a handler sends but the
framing of the body and `Connection: close`.
Used by the model proxy and the MCP endpoint.
"""

import contextlib
import socket
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import NoReturn

import anyio

from bridge.io.exchange import REASONS, Exchange, TooLarge
from bridge.io.sockets import Part, Socket, after, bind
from bridge.log import log
from bridge.wire import codec, http_head
from bridge.wire.http_body import BadBody
from bridge.wire.http_head import BadHead

Handler = Callable[[Exchange], Awaitable[None]]
Refuse = Callable[[int, str, bytes], bytes]

_LINGER_SECONDS, _LINGER_BYTES = 2.0, 64 << 20
_LOOK_SECONDS, _LOOK_BYTES = 0.2, 16 << 20


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
    """A listening socket, from `bind`; owns it. `host` and `port` are those it is bound to,
    `authority` both as a URL has them.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.host, self.port = sock.getsockname()[:2]
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.authority = f"{host}:{self.port}"

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
        watch = _Watch()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch.run)
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
                connection = _Connection(Socket(accepted), handler, refuse, watch)
                tasks.start_soon(connection.run)
        raise AssertionError


class _Watch:
    """Looks after clients while their handlers are busy: one that reads sees its client leave, one
    that waits for something else does not. A single task, asleep while nothing is handled.
    """

    def __init__(self) -> None:
        self.busy: set[_Connection] = set()
        self._wake: anyio.Event | None = None

    def begin(self, connection: "_Connection") -> None:
        """A request is being handled."""
        self.busy.add(connection)
        if self._wake is not None:
            self._wake.set()
            self._wake = None

    async def run(self) -> None:
        while True:
            if not self.busy:
                self._wake = anyio.Event()
                await self._wake.wait()
            await anyio.sleep(_LOOK_SECONDS)
            for connection in tuple(self.busy):
                connection.look()


class _Connection:
    """One client. Owns the socket, and the bytes that were read before they were asked for."""

    def __init__(self, sock: Socket, handler: Handler, refuse: Refuse, watch: _Watch) -> None:
        self._sock = sock
        self._handler, self._refuse, self._watch = handler, refuse, watch
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._reading = False
        self._scope = anyio.CancelScope()
        self._exchange: Exchange | None = None
        self.left = False
        self.tunnelled = False

    async def run(self) -> None:
        try:
            with self._scope:
                await self._serve()
        except Exception as error:  # noqa: BLE001 - the server outlives any connection
            log.error("a connection failed: %r", error, exc_info=error)
        finally:
            self._watch.busy.discard(self)
            # Of a body that ends with the stream, a plain close would look like the end.
            cut = self._exchange is not None and self._exchange.cut
            self._sock.reset() if cut else self._sock.close()

    def look(self) -> None:
        """Cancels the handler if its client has left.

        That shows behind the bytes which the client had sent before: as many are taken in as the
        two kernels can hold, while a handler that read would have taken them itself.
        """
        if self._reading or self.tunnelled:
            return
        try:
            while self._held < _LOOK_BYTES and (data := self._sock.read()) is not None:
                if not data:
                    break
                self._chunks.append(data)
                self._held += len(data)
            else:
                return
        except anyio.BrokenResourceError:
            pass
        self.left = True
        self._scope.cancel()

    async def take(self) -> bytes:
        """The next bytes from the client; `b""` when it has left."""
        if self._chunks:
            data = self._chunks.popleft()
            self._held -= len(data)
            return data
        self._reading = True
        try:
            data = await self._sock.receive()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            data = b""
        finally:
            self._reading = False
        if not data and not self.tunnelled:
            self.left = True
        return data

    def write(self, *parts: bytes) -> list[Part]:
        """Writes what goes out at once; what does not. Raises BrokenResourceError."""
        try:
            return after(parts, self._sock.write(*parts))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            self.left = True
            raise anyio.BrokenResourceError("the client left") from error

    async def send(self, *parts: Part) -> None:
        """Writes to the client. Raises BrokenResourceError when it has left."""
        try:
            await self._sock.send(*parts)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            self.left = True
            raise anyio.BrokenResourceError("the client left") from error

    def put_back(self, data: bytes) -> None:
        """Bytes taken that belong to what comes next."""
        self._chunks.appendleft(data)
        self._held += len(data)

    async def _serve(self) -> None:
        """The connection's requests, one after the other."""
        while (found := await self._next_head()) is not None:
            exchange = self._exchange = Exchange(self, *found)
            self._watch.begin(self)
            await self._handle(exchange)
            self._watch.busy.discard(self)
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
            if not self.left:
                log.error("a handler failed: %r", error, exc_info=error)
        if exchange.status is None and not self.left:
            exchange.keep_alive = False
            body = self._refuse(status, message, exchange.target)
            with contextlib.suppress(anyio.BrokenResourceError):
                await exchange.respond(status, [(b"Content-Type", b"application/json")], body)

    async def _next_head(self) -> tuple[http_head.Request, bytes] | None:
        """The next request's head and what has come behind it; None when there is none, or none
        that can be answered.
        """
        data = await self.take()
        try:
            looked_at = 0
            while True:
                if data.startswith(b"\r\n"):
                    data, looked_at = http_head.without_empty_lines(data), 0
                if end := http_head.find_end(data, looked_at):
                    break
                looked_at = len(data)
                more = await self.take()
                if not more:
                    return None
                data += more
            request = http_head.parse_request(data[:end])
        except BadHead as error:
            words = data.partition(b"\n")[0].split(b" ")
            await self._refuse_head(error, words[1] if len(words) > 1 else b"")
            return None
        return request, data[end:]

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
