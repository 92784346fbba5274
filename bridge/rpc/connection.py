"""A JSON-RPC connection over a pair of pipes, for either side of ACP.

Owns: the calls that are open in each direction. Rules:
- One reader, and it delivers synchronously: a handler has seen every line before the next one is
  parsed, so nothing can overtake anything and no order has to be restored.
- Nothing waits for the peer to read: `call`, `notify`, `reply` and `fail` post and return.
- End of input settles every open call, oldest first.

Both the daemon (`bridge.agent`) and the embedded agent (`bridge.loop_agent`) stand on it.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

import anyio
import anyio.lowlevel

from bridge.errors import RequestFailed
from bridge.io.pipes import CHUNK, FdReader, FdWriter
from bridge.wire import codec, jsonrpc
from bridge.wire.jsonrpc import Fault, Malformed, Notification, Request, Response
from bridge.wire.lines import LineFramer

LINE_CEILING = 256 * 1024 * 1024
_BEGINNINGS = frozenset(b'{["-0123456789tfnNI \t\r\x1b\xef')
"""The first bytes of JSON, of a byte order mark and of what may stand before a message."""
_PACE = 0.02
"""Seconds that what was read at once may take."""
_LEAST = 2048

Tap = Callable[[str, bytes], None]
"""Sees the bytes as they pass: ("in", what was read) or ("out", a line with its end)."""
Taps = Callable[[str, str], Tap]
"""Makes the tap of a channel (`acp`, `stderr`) of an agent of the session of that name."""
Settle = Callable[[Response], None]


class ConnectionEnded(Exception):
    """The peer's output ended before it answered; the text says why as far as it is known."""


class Handler(Protocol):
    """What a side of the connection does with what comes in. None of these may raise."""

    def fast(self, line: bytes) -> bool:
        """First look at a line, before it is parsed; True if nothing more is to be done."""
        ...

    def request(self, request: Request) -> None: ...

    def notification(self, notification: Notification) -> None: ...

    def noise(self, noise: Malformed) -> None:
        """A line that is no message, or a response to no open call."""
        ...

    async def room(self) -> None:
        """Awaited between reads: return when more input is welcome. Holding back here fills the
        pipe and stops the peer; nothing is dropped."""
        ...


class Connection:
    """One peer. `run` is its reader; everything else may be called at any time from the loop."""

    def __init__(
        self,
        reader: FdReader,
        writer: FdWriter,
        *,
        ceiling: int = LINE_CEILING,
        tap: Tap | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._framer = LineFramer(ceiling)
        self._tap = tap
        self._next = 0
        self._open: dict[bytes, Settle] = {}
        self.ended: str | None = None
        """Why no more will come, once `end` was called."""

    async def run(self, handler: Handler) -> None:
        """Reads to the end of input; raises LineTooLong. Call `end` afterwards."""
        fast, tap, size = handler.fast, self._tap, CHUNK
        while data := await self._reader.receive(size):
            began = time.perf_counter()
            if tap is not None:
                tap("in", data)
            for line in self._framer.feed(data):
                if not fast(line):
                    self._deliver(line, handler)
            size = _paced(size, time.perf_counter() - began)
            await handler.room()
        if (last := self._framer.end()) and not fast(last):
            self._deliver(last, handler)

    async def caught_up(self, within: float) -> None:
        """Returns when everything the peer has written so far was delivered, or after `within`
        seconds: a peer may write without a pause, and a handler may hold the reader back."""
        if self._reader.idle() or self.ended is not None:
            return
        with anyio.move_on_after(within):
            while not self._reader.idle() and self.ended is None:
                await anyio.lowlevel.checkpoint()

    def _deliver(self, line: bytes, handler: Handler) -> None:
        if not line or line.isspace():
            return
        if line[0] not in _BEGINNINGS:
            # At a tenth of the cost: programs print a great deal.
            handler.noise(Malformed("not JSON: it does not begin as JSON does", line))
            return
        match jsonrpc.parse(line):
            case Response() as response:
                if not self._settle(response):
                    handler.noise(Malformed("a response to no open request", line))
            case Request() as request:
                handler.request(request)
            case Notification() as notification:
                handler.notification(notification)
            case Malformed() as noise:
                if noise.id is not None:
                    self.fail(noise.id, jsonrpc.INVALID_REQUEST, noise.reason)
                handler.noise(noise)

    def _settle(self, response: Response) -> bool:
        settle = self._open.pop(response.id, None)
        if settle is None:
            # Some peers give a number back as a string or as 2.0; ours are all integers.
            settle = self._open.pop(response.id.strip(b'"').removesuffix(b".0"), None)
        if settle is None:
            return False
        settle(response)
        return True

    def call(self, method: str, params: Any, settle: Settle) -> int:
        """Sends a request; `settle` is called once, by the reader, in wire order. Gives its id.

        Raises codec.JSONError for params that cannot be written; then nothing was sent.
        """
        self._next += 1
        ident = self._next
        key = b"%d" % ident
        if self.ended is not None:
            settle(Response(key, codec.Raw(b"null"), Fault(None, self.ended), b""))
            return ident
        line = jsonrpc.request(ident, method, params)
        self._open[key] = settle
        self._post(line)
        return ident

    def start(
        self, method: str, params: Any, act: Callable[[Any], None] | None = None
    ) -> "Pending":
        """Sends a request whose result is awaited later. `act` gets the result from the reader,
        before anything that follows it on the wire, and may refuse it with codec.JSONError."""
        return Pending(self, method, params, act)

    async def request(self, method: str, params: Any) -> Any:
        """Sends a request and waits for its result, as `Pending.result` does."""
        return await self.start(method, params).result()

    def withdraw(self, ident: int) -> None:
        """Forgets a call that is open, and tells the peer with `$/cancel_request`."""
        if self._open.pop(b"%d" % ident, None) is not None:
            self.notify("$/cancel_request", {"requestId": ident})

    def result_of(self, response: Response) -> Any:
        """The decoded result; raises RequestFailed or ConnectionEnded."""
        if response.error is None:
            return codec.decode(response.result)
        if self.ended is not None and not response.line:
            raise ConnectionEnded(self.ended)
        raise RequestFailed(response.error.code, response.error.message, response.error.data)

    def notify(self, method: str, params: Any) -> None:
        self._post(jsonrpc.notification(method, params))

    def reply(self, ident: bytes, result: Any) -> None:
        """Answers the peer's request `ident` (its JSON text, as `Request.id` has it)."""
        try:
            line = jsonrpc.result(ident, result)
        except codec.JSONError as error:
            line = jsonrpc.failure(ident, jsonrpc.INTERNAL_ERROR, f"the result: {error}")
        self._post(line)

    def fail(self, ident: bytes, code: int, message: str, data: Any = None) -> None:
        self._post(jsonrpc.failure(ident, code, message, data))

    def _post(self, line: bytes) -> None:
        if self._tap is not None:
            self._tap("out", line)
        self._writer.post(line)

    def end(self, reason: str) -> None:
        """Settles every open call as failed for `reason`, oldest first, and later ones at once."""
        if self.ended is not None:
            return
        self.ended = reason
        while self._open:
            key = next(iter(self._open))
            self._open.pop(key)(Response(key, codec.Raw(b"null"), Fault(None, reason), b""))


def _paced(size: int, seconds: float) -> int:
    """How much to read next, after so much took so long: a peer that writes nothing but tiny lines
    must not keep the others from their turn."""
    return max(size // 2, _LEAST) if seconds > _PACE else min(size * 2, CHUNK)


class Pending:
    """A request that was sent, and what came of it. Made by `Connection.start`."""

    def __init__(
        self, connection: Connection, method: str, params: Any, act: Callable[[Any], None] | None
    ) -> None:
        self._connection = connection
        self._act = act
        self._value: Any = None
        self._error: Exception | None = None
        self._answered = anyio.Event()
        self._ident = connection.call(method, params, self._settle)

    def _settle(self, response: Response) -> None:
        try:
            self._value = self._connection.result_of(response)
            if self._act is not None:
                self._act(self._value)
        except (RequestFailed, ConnectionEnded, codec.JSONError) as error:
            self._error = error
        self._answered.set()

    async def result(self) -> Any:
        """Waits for the decoded result.

        Raises RequestFailed (the peer's error), ConnectionEnded, or codec.JSONError. Cancelled
        while it waits, it withdraws the request.
        """
        try:
            await self._answered.wait()
        except anyio.get_cancelled_exc_class():
            self._connection.withdraw(self._ident)
            raise
        if self._error is not None:
            raise self._error
        return self._value
