"""A server's HTTP side: its address, its headers, its connections.

Rules: whether a request's bytes have gone out is known exactly; the server's headers go to its own
origin and to no other; connections are kept only shortly, so that a call is hardly ever written
into one the server is just closing. Called by `http_channel` and `sse_channel`.
"""

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin, urlsplit

import anyio
from anyio.abc import TaskGroup

from bridge import __version__
from bridge.io import httppool
from bridge.io.forward import forward_for
from bridge.io.httpclient import Call
from bridge.io.httppool import Cut, Pool, UpstreamError
from bridge.mcp.settings import Upstream
from bridge.rules import retry
from bridge.wire import http_head

if TYPE_CHECKING:
    from bridge.wire.encodings import Decoder

Headers = list[tuple[str, str]]
Heads = Callable[[dict[str, Any]], None]
"""Is told of each exchange, when the head of its response is there (docs/trace-format.md)."""

_KEPT_SECONDS = 3.0
_REDIRECTS = 5
_LARGE = 1 << 15
_PIECE = 1 << 14
_KEPT = "!#$%&'()*+,/:;=?@[]~"
"""What stands for itself in an address: the rest is no part of one, and is escaped."""
_AGENT = ("User-Agent", f"acp-mcp-bridge/{__version__}")


class Broken(Exception):
    """No (further) bytes of a response. `connecting`: there was no connection to begin with;
    `final`: another attempt would fare no better."""

    def __init__(self, detail: str, *, connecting: bool = False, final: bool = False) -> None:
        super().__init__(detail)
        self.connecting = connecting
        self.final = final


class Origin:
    """One server's. `deaf`: it has been seen to have no stream of its own (GET)."""

    def __init__(self, upstream: Upstream, heads: Heads | None = None) -> None:
        self.url = upstream.url
        self._name = upstream.name
        self._heads = heads
        self.deaf = False
        self._headers = list(upstream.headers)
        self._place = _place(upstream.url)
        self._pool = Pool(
            self._place,
            # The bound on parallel calls is kept elsewhere; streams and farewells go beside them.
            limit=1 << 16,
            connect_seconds=upstream.policy.connect_timeout,
            idle_seconds=_KEPT_SECONDS,
            forward=forward_for(self._place, os.environ),
        )

    async def open(
        self,
        method: str,
        headers: Headers,
        body: bytes,
        *,
        tasks: TaskGroup,
        written: Callable[[], None] = lambda: None,
        url: str | None = None,
        rpc: int | None = None,
    ) -> "Reply":
        """Sends a request and gives its response's head; raises Broken.

        `rpc`: the id of the JSON-RPC request in its body. `written` is called when its bytes have
        begun to go out. Redirects within the origin that keep the method (307, 308) are followed;
        others are an answer like any other. `tasks` must outlive the reply.
        """
        target = url or self.url
        for _ in range(_REDIRECTS):
            place = _place(target)
            if place != self._place:
                raise Broken(
                    f"a redirect to another origin ({place}) is not followed: "
                    "its headers are for this server alone",
                    final=True,
                )
            reply = await self._exchange(method, target, headers, body, written, tasks, rpc)
            location = reply.header("location") if reply.status in (307, 308) else ""
            if not location:
                return reply
            await reply.close()
            target = joined(target, location)
        raise Broken("the server redirects in circles", final=True)

    async def _exchange(
        self,
        method: str,
        url: str,
        headers: Headers,
        body: bytes,
        written: Callable[[], None],
        tasks: TaskGroup,
        rpc: int | None,
    ) -> "Reply":
        target, pairs = self._head(url, headers, body)
        began = time.monotonic()
        held = _Held(Call(self._pool, method, target, pairs, [body] if body else ()))
        try:
            await held.enter(tasks if len(body) > _LARGE else None, written)
        except UpstreamError as error:
            raise Broken(str(error), connecting=True) from None
        reply = Reply(held)
        try:
            head = await held.call.head()
            reply.take(head)
            if self._heads is not None:
                seconds = time.monotonic() - began
                self._heads(_told(self._name, rpc, method, url, pairs, head, seconds))
        except UpstreamError as error:
            await reply.close()
            raise Broken(str(error)) from None
        except BaseException:
            await reply.close()
            raise
        return reply

    def _head(self, url: str, headers: Headers, body: bytes) -> tuple[bytes, http_head.Headers]:
        parts = urlsplit(url)
        names = {name.lower() for name, _ in self._headers}
        # A stream that is compressed comes in pieces that are none of the server's.
        sent: Headers = [*self._headers, *headers, ("Accept-Encoding", "identity")]
        if "host" not in names:
            sent.insert(0, ("Host", self._place.authority))
        if "user-agent" not in names:
            sent.append(_AGENT)
        if body:
            sent.append(("Content-Length", str(len(body))))
        target = quote(parts.path or "/", _KEPT, errors="surrogatepass")
        if parts.query:
            target += f"?{quote(parts.query, _KEPT, errors='surrogatepass')}"
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in sent]
        return target.encode(), pairs

    def close(self) -> None:
        """Closes the idle connections."""
        self._pool.close()


class _Held:
    """A call that is entered in one place and left in another.

    One with a large body sends it in tasks of its own while the response may be coming; these must
    be left where they were entered, which is then a task of its own too.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self._apart = False
        self._failure: BaseException | None = None
        self._entered, self._left = anyio.Event(), anyio.Event()

    async def enter(self, tasks: TaskGroup | None, written: Callable[[], None]) -> None:
        """Raises UpstreamError. `written` is called before anything else can happen."""
        if tasks is None:
            await self.call.__aenter__()
            written()
            return
        self._apart = True
        tasks.start_soon(self._hold, written)
        try:
            await self._entered.wait()
        except BaseException:
            self._left.set()
            raise
        if self._failure is not None:
            raise self._failure

    async def _hold(self, written: Callable[[], None]) -> None:
        try:
            async with self.call:
                written()
                self._entered.set()
                await self._left.wait()
        except UpstreamError as error:
            self._failure = error
        finally:
            self._entered.set()

    async def leave(self) -> None:
        if self._apart:
            self._left.set()
        else:
            await self.call.__aexit__(None, None, None)


class Reply:
    """A response under way: `status`; `receive` gives its body. Closed by whoever has it."""

    def __init__(self, held: _Held) -> None:
        self._held: _Held | None = held
        self.status = 0
        self._headers: http_head.Headers = []
        self._decoders: list[Decoder] | None = None
        self._encoded = b""

    def take(self, head: http_head.Response) -> None:
        self.status, self._headers = head.status, head.headers

    def header(self, name: str) -> str:
        """The first value of a header, empty if there is none; `name` in lower case."""
        value = http_head.find(self._headers, name.encode())
        return "" if value is None else value.decode("latin-1")

    def all(self, name: str) -> list[str]:
        """All values of a header."""
        key = name.encode()
        return [value.decode("latin-1") for field, value in self._headers if field.lower() == key]

    @property
    def kind(self) -> str:
        """The media type of its body, without parameters."""
        return self.header("content-type").partition(";")[0].strip().lower()

    @property
    def retry_after(self) -> float | None:
        """The seconds the server asks to be left alone for."""
        return retry.retry_after_seconds(self.header("retry-after") or None, time.time())

    async def receive(self) -> bytes:
        """The next bytes of the body as they were before any Content-Encoding, `b""` at its end;
        raises Broken."""
        if self._decoders is None:
            self._decoders = self._undo(self.header("content-encoding"))
        if not self._decoders:
            return await self._receive()
        while True:
            if not self._encoded:
                self._encoded = await self._receive()
            if not self._encoded:
                return b""
            # A little at a time: what it grows to is bounded by whoever receives.
            data, self._encoded = self._encoded[:_PIECE], self._encoded[_PIECE:]
            try:
                for decoder in self._decoders:
                    data = decoder.feed(data)
            except ValueError as error:
                raise Broken(f"the body is not what its Content-Encoding says: {error}") from None
            if data:
                return data

    def _undo(self, encoding: str) -> "list[Decoder]":
        """What undoes an encoding that was not asked for, as some servers have one all the same."""
        if encoding in ("", "identity"):
            return []
        # Loaded here: hardly any server needs it.
        from bridge.wire import encodings

        names = http_head.members(encoding.encode("latin-1"))[::-1]
        try:
            return [encodings.decoder(name) for name in names if name != b"identity"]
        except encodings.EncodingError as error:
            raise Broken(f"{error}, and was not asked for", final=True) from None

    async def _receive(self) -> bytes:
        try:
            while self._held is not None:
                piece = await self._held.call.receive()
                if piece is None:
                    return b""
                if piece.data:
                    return piece.data
        except Cut as error:
            raise Broken(str(error)) from None
        return b""

    async def close(self) -> None:
        """Gives the connection back if the body has been read to its end, else closes it."""
        held, self._held = self._held, None
        if held is not None:
            await held.leave()


def joined(base: str, reference: str) -> str:
    """The address that a reference of the server's means; raises Broken if it means none."""
    try:
        url = urljoin(base, reference)
        _place(url)
    except ValueError as error:
        words = f"the server names an address that is none ({reference[:200]!r}: {error})"
        raise Broken(words, final=True) from None
    return url


def _told(
    server: str,
    rpc: int | None,
    method: str,
    url: str,
    headers: http_head.Headers,
    response: http_head.Response,
    seconds: float,
) -> dict[str, Any]:
    return {
        "server": server,
        "rpc": rpc,
        "method": method,
        "url": url,
        "headers": _texts(headers),
        "status": response.status,
        "reason": response.reason.decode("latin-1"),
        "response_headers": _texts(response.headers),
        "seconds": round(seconds, 6),
    }


def _texts(headers: http_head.Headers) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]


def _place(url: str) -> httppool.Origin:
    """Scheme, host and port: what makes two addresses one origin."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return httppool.Origin(parts.scheme, parts.hostname or "", port)
