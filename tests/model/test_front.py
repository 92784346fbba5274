"""Who is let in: foreign hosts and wrong prefixes are turned away, in the dialect's shape."""

import json

import pytest

from tests.model.harness import OK, answer, standing

pytestmark = pytest.mark.anyio


def error_of(found: bytes) -> dict[str, object]:
    return json.loads(found.partition(b"\r\n\r\n")[2])["error"]


@pytest.mark.parametrize("host", [b"evil.example", b"127.0.0.1.evil.example:80", b""])
async def test_a_foreign_host_gets_421(host: bytes) -> None:
    async with standing(answer(OK)) as stand:
        sent = stand.request(b"{}").replace(b"Host: 127.0.0.1:%d" % stand.port, b"Host: " + host)
        found = await stand.exchange(sent)
        assert found.startswith(b"HTTP/1.1 421 Misdirected Request\r\n")
        assert error_of(found)["code"] == "misdirected"
        assert not stand.requests


@pytest.mark.parametrize("prefix", [b"", b"/", b"/guess", b"//"])
async def test_a_wrong_prefix_gets_404(prefix: bytes) -> None:
    async with standing(answer(OK)) as stand:
        stand.prefix = prefix
        found = await stand.exchange(stand.request(b"{}"))
        assert found.startswith(b"HTTP/1.1 404 Not Found\r\n")
        assert error_of(found)["code"] == "not_found"
        anthropic = await stand.exchange(stand.request(b"{}", b"/v1/messages"))
        assert json.loads(anthropic.partition(b"\r\n\r\n")[2])["type"] == "error"
        assert not stand.requests


@pytest.mark.parametrize(
    "lines",
    [
        (b"Transfer-Encoding: chunked",),
        (b"Content-Length: 2",),
        (b"X: a\r\n b",),
        (b"X: a\nY: b",),
        (b"X: \x01",),
    ],
)
async def test_a_malformed_head_gets_400_and_reaches_nobody(lines: tuple[bytes, ...]) -> None:
    async with standing(answer(OK)) as stand:
        peer = await stand.dial()
        await peer.send(stand.request(b"{}", b"/v1/messages", *lines))
        found, _ = await peer.rest()
        assert found.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert b"Connection: close\r\n" in found
        assert json.loads(found.partition(b"\r\n\r\n")[2])["error"]["code"] == "bad_request"
        assert not stand.requests
