"""TLS to upstream servers: a `Socket` whose bytes are encrypted, verified as usual.

Rule: certificates and names are checked against the system's store (SSL_CERT_FILE, SSL_CERT_DIR
count); no switch turns that off. An end without TLS's own closing is a break.
Used by httppool, and imported only when an https upstream is first connected to.
"""

import ssl
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import anyio
import anyio.abc
from anyio.streams.tls import TLSStream

from bridge.io.sockets import Part, Socket


@cache
def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class _Transport(anyio.abc.ByteStream):
    """A Socket as anyio's TLS wants it."""

    def __init__(self, sock: Socket) -> None:
        self.sock = sock

    async def receive(self, max_bytes: int = 65536) -> bytes:
        data = await self.sock.receive()
        if not data:
            raise anyio.EndOfStream
        return data

    async def send(self, item: bytes) -> None:
        await self.sock.send(item)

    async def send_eof(self) -> None:
        self.sock.end()

    async def aclose(self) -> None:
        self.sock.close()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        return {}


class TlsSocket:
    """What httpclient needs of a Socket, over TLS. Made by `wrap`."""

    def __init__(self, stream: TLSStream, sock: Socket) -> None:
        self._stream = stream
        self._sock = sock

    async def receive(self) -> bytes:
        """The next bytes; `b""` at the end. Raises BrokenResourceError."""
        try:
            return await self._stream.receive()
        except anyio.EndOfStream:
            return b""

    async def send(self, *parts: Part) -> None:
        """Sends all of it. Raises BrokenResourceError."""
        for part in parts:
            await self._stream.send(bytes(part))

    def write(self, *parts: Part) -> int:
        """Nothing can be written without waiting."""
        return 0

    def untouched(self) -> bool:
        """Whether the idle connection is open and nothing has come on it."""
        return self._sock.untouched()

    def close(self) -> None:
        """Closes without TLS's farewell, which the peer might make us wait for."""
        self._sock.close()


async def wrap(sock: Socket, host: str) -> TlsSocket:
    """Shakes hands; the socket is closed if that fails. Raises ssl.SSLError (also for a certificate
    that does not verify) and BrokenResourceError.
    """
    try:
        stream = await TLSStream.wrap(
            _Transport(sock), server_side=False, hostname=host, ssl_context=_context()
        )
    except BaseException:
        sock.close()
        raise
    return TlsSocket(stream, sock)
