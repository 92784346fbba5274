"""Forward proxies: which one by the environment, and a real one on the loopback in between."""

import base64
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
import pytest
from anyio.streams.tls import TLSListener

from bridge.io import tls
from bridge.io.forward import Forward, forward_for
from bridge.io.httpclient import Call
from bridge.io.httppool import Origin, Pool, UpstreamError, UpstreamTimeout
from tests.peers.certificates import localhost_certificate
from tests.raw import PATIENCE, Peer, twice, upstream

HTTPS, HTTP = Origin("https", "api.test", 443), Origin("http", "api.test", 80)
PROXY = {"https_proxy": "http://proxy:1", "http_proxy": "http://proxy:2"}


@pytest.mark.parametrize(
    "origin, environment, expected",
    [
        (HTTPS, {}, None),
        (HTTPS, PROXY, ("proxy", 1)),
        (HTTP, PROXY, ("proxy", 2)),
        (HTTPS, {"HTTPS_PROXY": "http://a:1", "https_proxy": "http://b:2"}, ("b", 2)),
        (HTTPS, {"HTTPS_PROXY": "http://a:1", "https_proxy": ""}, None),
        (HTTPS, {"ALL_PROXY": "http://a"}, ("a", 80)),
        (HTTPS, {"HTTP_PROXY": "http://a:1"}, None),
        (HTTP, {"HTTP_PROXY": "a:3128"}, ("a", 3128)),
        (HTTP, {"HTTP_PROXY": "http://a:1", "REQUEST_METHOD": "GET"}, None),
        (HTTP, {"http_proxy": "http://[::2]:1"}, ("::2", 1)),
    ],
)
def test_the_usual_variables_name_it(
    origin: Origin, environment: dict[str, str], expected: tuple[str, int] | None
) -> None:
    found = forward_for(origin, environment)
    assert (None if found is None else found[:2]) == expected


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.9", "::1"])
def test_the_loopback_is_never_behind_one(host: str) -> None:
    assert forward_for(Origin("http", host, 80), PROXY) is None


@pytest.mark.parametrize(
    "exceptions, host, direct",
    [
        ("*", "api.test", True),
        ("api.test", "api.test", True),
        ("API.Test", "api.test", True),
        ("test", "api.test", True),
        (".test", "api.test", True),
        ("*.test", "api.test", True),
        ("pi.test", "api.test", False),
        ("a.api.test", "api.test", False),
        ("x, api.test", "api.test", True),
        ("x api.test", "api.test", True),
        ("api.test:443", "api.test", True),
        ("api.test:8443", "api.test", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.1.2.3:443", "10.1.2.3", True),
        ("fd00::/8", "fd00::1", True),
        ("[fd00::1]:443", "fd00::1", True),
        ("[fd00::1]:80", "fd00::1", False),
        ("10.0.0.0/8", "api.test", False),
        ("", "api.test", False),
        (".", "api.test", False),
    ],
)
def test_exceptions_are_reached_directly(exceptions: str, host: str, direct: bool) -> None:
    found = forward_for(Origin("https", host, 443), {**PROXY, "NO_PROXY": exceptions})
    assert (found is None) is direct


@pytest.mark.parametrize(
    "url, words",
    [
        ("socks5://user:CANARY@p:1", "socks5://"),
        ("https://p", "https://"),
        ("http://p:port", "cannot be read"),
        ("http://", "only http://"),
    ],
)
@pytest.mark.anyio
async def test_one_that_cannot_be_spoken_with_is_an_error_when_it_is_needed(
    url: str, words: str
) -> None:
    pool = Pool(HTTPS, forward=forward_for(HTTPS, {"https_proxy": url}))
    with pytest.raises(UpstreamError, match=words) as caught:
        async with Call(pool, "GET", b"/", []):
            pass
    assert "CANARY" not in str(caught.value)


class Proxy:
    """A forward proxy that reaches the places it knows on the loopback."""

    def __init__(self, places: dict[bytes, int], answer: bytes = b"") -> None:
        self.heads: list[bytes] = []
        self._places, self._answer = places, answer

    async def __call__(self, peer: Peer) -> None:
        head = await peer.until(b"\r\n\r\n")
        self.heads.append(head)
        if self._answer:
            await peer.send(self._answer)
            await peer.rest()
            return
        method, target, _ = head.split(b" ", 2)
        if method == b"CONNECT":
            place, first = target, b""
        else:
            place, slash, path = target.removeprefix(b"http://").partition(b"/")
            first = head.replace(target, slash + path, 1) + peer.seen
        async with await anyio.connect_tcp("127.0.0.1", self._places[place]) as there:
            if first:
                await there.send(first)
            else:
                await peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._pump, peer.stream, there, tasks.cancel_scope)
                tasks.start_soon(self._pump, there, peer.stream, tasks.cancel_scope)

    @staticmethod
    async def _pump(
        source: anyio.abc.ByteStream, sink: anyio.abc.ByteStream, scope: anyio.CancelScope
    ) -> None:
        try:
            async for data in source:
                await sink.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        scope.cancel()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def both(pool: Pool) -> list[bytes]:
    return await twice(pool, b"/v1/x?a=b", b"x" * 100, b"api.test")


@asynccontextmanager
async def plain_upstream(requests: list[bytes]) -> AsyncGenerator[int]:
    """An http server that keeps what it was asked."""

    async def script(peer: Peer) -> None:
        while True:
            head = await peer.until(b"\r\n\r\n")
            requests.append(head + await peer.count(100))
            await peer.send(OK)

    async with upstream(script) as port:
        yield port


@pytest.mark.anyio
async def test_an_http_upstream_is_asked_for_by_its_whole_url() -> None:
    requests: list[bytes] = []
    async with plain_upstream(requests) as port:
        proxy = Proxy({b"api.test": port})
        async with upstream(proxy) as at:
            forward = forward_for(HTTP, {"http_proxy": f"http://us%65r:CANARY@127.0.0.1:{at}"})
            assert await both(Pool(HTTP, forward=forward)) == [b"ok", b"ok"]
    assert len(proxy.heads) == 1  # the connection is kept
    assert proxy.heads[0].startswith(
        b"POST http://api.test/v1/x?a=b HTTP/1.1\r\nHost: api.test\r\n"
    )
    given = base64.b64encode(b"user:CANARY")
    assert b"\r\nProxy-Authorization: Basic " + given + b"\r\n" in proxy.heads[0]
    assert requests[0].endswith(b"x" * 100)


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = localhost_certificate(tmp_path, "api.test")
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    tls._context.cache_clear()
    yield path
    tls._context.cache_clear()


@pytest.mark.anyio
async def test_an_https_upstream_is_reached_by_a_tunnel_that_hides_the_request(
    certificate: Path,
) -> None:
    asked: list[bytes] = []

    async def serve(stream: anyio.abc.ByteStream) -> None:
        peer = Peer(stream)  # type: ignore[arg-type]
        try:
            while True:
                asked.append(await peer.until(b"\r\n\r\n"))
                await peer.count(100)
                await peer.send(OK)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            pass

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    with anyio.fail_after(PATIENCE):
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(TLSListener(listener, context).serve, serve)
            proxy = Proxy({b"api.test:443": listener.extra(anyio.abc.SocketAttribute.local_port)})
            async with upstream(proxy) as at:
                forward = forward_for(HTTPS, {"HTTPS_PROXY": f"http://user:pw@127.0.0.1:{at}"})
                assert await both(Pool(HTTPS, forward=forward)) == [b"ok", b"ok"]
            tasks.cancel_scope.cancel()
    given = base64.b64encode(b"user:pw")
    assert proxy.heads == [
        b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n"
        b"Proxy-Authorization: Basic " + given + b"\r\n\r\n"
    ]
    assert asked[0].startswith(b"POST /v1/x?a=b HTTP/1.1\r\n")
    assert not any(b"Proxy-" in head for head in asked)


REFUSALS = [
    (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "it said 407 Proxy Authentication"),
    (b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", "it said 403 No"),
    (b"nonsense\r\n\r\n", "it sent a broken head"),
    (b"HTTP/1.1 200 OK\r\n\r\nearly", "it sent bytes before"),
]


@pytest.mark.parametrize("answer, words", REFUSALS)
@pytest.mark.anyio
async def test_a_refused_tunnel_names_the_proxy_without_its_password(
    answer: bytes, words: str
) -> None:
    async with upstream(Proxy({}, answer)) as at:
        forward = forward_for(HTTPS, {"https_proxy": f"http://user:CANARY@127.0.0.1:{at}"})
        with pytest.raises(UpstreamError) as caught:
            await both(Pool(HTTPS, forward=forward))
    told = str(caught.value)
    assert told.startswith(
        f"cannot connect to https://api.test through the proxy http://127.0.0.1:{at}: "
    )
    assert words in told
    assert "CANARY" not in told


@pytest.mark.anyio
async def test_a_proxy_that_wants_credentials_for_a_plain_request_is_named() -> None:
    async with upstream(Proxy({}, REFUSALS[0][0])) as at:
        with pytest.raises(UpstreamError, match=r"behind the proxy http://127\S+, which wants"):
            await both(Pool(HTTP, forward=Forward("127.0.0.1", at)))


@pytest.mark.anyio
async def test_a_proxy_that_is_down_or_silent_is_named() -> None:
    with pytest.raises(UpstreamError, match=r"through the proxy http://127.0.0.1:1: .*refused"):
        await both(Pool(HTTPS, forward=Forward("127.0.0.1", 1)))

    async def silent(peer: Peer) -> None:
        await peer.rest()

    async with upstream(silent) as at:
        pool = Pool(HTTPS, forward=Forward("127.0.0.1", at), connect_seconds=0.1)
        with pytest.raises(UpstreamTimeout, match=f"through the proxy http://127.0.0.1:{at} in"):
            await both(pool)
