"""https upstreams: verified, or refused with words."""

import ssl
from pathlib import Path

import anyio
import anyio.abc
import anyio.lowlevel
import pytest
from anyio.streams.tls import TLSListener

from bridge.io import tls
from bridge.io.httppool import Cut, Origin, Pool, UpstreamError
from tests.peers.certificates import localhost_certificate
from tests.raw import PATIENCE, twice

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return localhost_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    tls._context.cache_clear()
    yield
    tls._context.cache_clear()


async def exchange(port: int, host: str = "localhost") -> list[bytes]:
    return await twice(Pool(Origin("https", host, port)), b"/", b"x" * 200_000)


class Served:
    """A TLS server that answers two requests a connection, the last one as told."""

    def __init__(self, last: bytes) -> None:
        self.connections = 0
        self._last = last

    async def __call__(self, stream: anyio.abc.ByteStream) -> None:
        self.connections += 1
        for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", self._last):
            got = 0
            while got < 200_000:
                got += len(await stream.receive())
            await stream.send(answer)
        await anyio.lowlevel.checkpoint()
        await stream.transport_stream.aclose()  # type: ignore[attr-defined]


async def served(certificate: Path, handler: Served, tasks: anyio.abc.TaskGroup) -> int:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    tasks.start_soon(TLSListener(listener, context).serve, handler)
    return listener.extra(anyio.abc.SocketAttribute.local_port)


async def test_a_verified_upstream_is_spoken_to_on_one_connection(trusted, certificate) -> None:
    handler = Served(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nko")
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            port = await served(certificate, handler, tasks)
            assert await exchange(port) == [b"ok", b"ko"]
            assert handler.connections == 1
            tasks.cancel_scope.cancel()


async def test_an_end_without_farewell_is_a_break(trusted, certificate) -> None:
    handler = Served(b"HTTP/1.1 200 OK\r\n\r\nko")
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            port = await served(certificate, handler, tasks)
            with pytest.raises(Cut):
                await exchange(port)
            tasks.cancel_scope.cancel()


async def test_an_unknown_certificate_is_refused(certificate) -> None:
    tls._context.cache_clear()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            port = await served(certificate, Served(b""), tasks)
            with pytest.raises(UpstreamError, match="certificate verify failed"):
                await exchange(port)
            tasks.cancel_scope.cancel()


async def test_a_server_without_tls_is_an_error_with_words() -> None:
    from tests.raw import Peer, upstream

    async def script(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with upstream(script) as port:
        with pytest.raises(UpstreamError, match=r"cannot connect to https://127\.0\.0\.1"):
            await exchange(port, "127.0.0.1")
