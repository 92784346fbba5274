"""The response to a POST: plain where nothing precedes the answer, alive while it is awaited."""

from typing import Any

import anyio
import pytest

from bridge.mcp import stream
from tests.mcp.fake import Fake, Seen
from tests.mcp.test_http_front import endpoint
from tests.mcp.web import head
from tests.raw import Peer

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


async def test_a_long_wait_is_kept_alive_by_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_QUIET", 0.01)
    monkeypatch.setattr(stream, "_KEEP_ALIVE", 0.01)
    release = anyio.Event()

    async def slow(server: Fake, peer: Peer, seen: Seen) -> None:
        await release.wait()
        await server.behave(peer, seen)

    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open()
        server.acts["tools/call"] = [slow]
        message = web.message("tools/call", {"name": "echo"})
        async with web.streaming(message) as response:
            assert response.status == 200
            assert response.headers["content-type"] == "text/event-stream"
            for _ in range(3):
                assert await response.chunk() == b": still here\n\n"
            release.set()
            assert (await response.event())["result"]["content"]
            with pytest.raises(EOFError):
                await response.event()


async def test_a_caller_that_takes_json_alone_waits_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "_QUIET", 0.0)
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open()
        got = await web.call("tools/call", {"name": "echo"}, {"Accept": "application/json"})
    assert got.headers["content-type"] == "application/json"
    assert got.result["content"]


async def test_the_callers_own_stream_is_open_before_there_is_anything_to_tell() -> None:
    async with endpoint(Fake(eras=("legacy",))) as web:
        await web.open()
        peer = await web.send("GET", headers={"Accept": "text/event-stream"})
        status, fields = await head(peer)
        await peer.close()
    assert status == 200
    assert fields["content-type"] == "text/event-stream"
    assert fields["cache-control"] == "no-cache, no-transform"
