"""Case 67: large histories and images pass; the ceiling is stated, far away, and names itself."""

import gzip
import json

import pytest

from bridge.model import body as body_module
from bridge.model import relay
from tests.model.harness import OK, answer, standing

pytestmark = pytest.mark.anyio


def large(size: int, content: str) -> bytes:
    image = "A" * size
    url = f'{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{image}"}}}}'
    user = f'{{"role":"user","content":[{url}]}}'
    return f'{{"messages":[{user},{{"role":"assistant","content":{content}}}]}}'.encode()


@pytest.mark.parametrize("size", [1_500_000, 40_000_000])
async def test_large_bodies_pass_mended(size: int) -> None:
    async with standing(answer(OK)) as stand:
        assert await stand.exchange(stand.request(large(size, "null"))) == OK
        assert stand.bodies[0] == large(size, '""')


async def test_the_ceiling_is_a_gibibyte_and_its_error_names_it() -> None:
    assert body_module.CEILING == 1 << 30
    async with standing(answer(OK)) as stand:
        peer = await stand.dial()
        await peer.send(stand.request(b"").replace(b": 0\r\n", b": %d\r\n" % ((1 << 30) + 1)))
        found, _ = await peer.rest()
        assert found.startswith(b"HTTP/1.1 413 ")
        error = json.loads(found.partition(b"\r\n\r\n")[2])["error"]
        assert error["type"] == "bridge_error"
        assert str(1 << 30) in error["message"]
        assert not stand.requests


async def test_a_chunked_body_is_stopped_at_the_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "CEILING", 1000)
    async with standing(answer(OK)) as stand:
        peer = await stand.dial()
        head = stand.request(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        await peer.send(head + b"3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n")
        found, _ = await peer.rest()
        assert found.startswith(b"HTTP/1.1 413 ")
        assert not stand.requests


async def test_a_ceiling_on_the_decoded_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_module, "CEILING", 1 << 20)
    async with standing(answer(OK)) as stand:
        bomb = gzip.compress(bytes(4 << 20))
        found = await stand.exchange(
            stand.request(bomb, b"/chat/completions", b"Content-Encoding: gzip")
        )
        assert found.startswith(b"HTTP/1.1 413 ")
        assert str(1 << 20).encode() in found
