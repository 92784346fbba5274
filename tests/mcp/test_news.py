"""What callers are told outside of requests: subscriptions, changed lists, no stream lost."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from bridge.mcp.hub import Hub
from bridge.mcp.news import News
from bridge.mcp.service import McpProxy
from tests.mcp import fake
from tests.mcp.callers import QUICK, hub_of
from tests.mcp.fake import Act, Fake, Seen
from tests.mcp.test_catalogue import entry
from tests.mcp.test_relay import note
from tests.mcp.web import MODERN, Web
from tests.raw import Peer

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
UPDATED = "notifications/resources/updated"
CHANGED = "notifications/tools/list_changed"


@asynccontextmanager
async def endpoint(server: Fake) -> AsyncGenerator[tuple[Web, Hub]]:
    async with server.running(), McpProxy(lambda event: None) as proxy:
        (given,) = proxy.mount("a", [entry("s", server)], {"s": QUICK})
        yield Web(given["url"]), hub_of(proxy)


class Stream:
    """A server's own stream (GET, or a subscription), held open for the test to write to."""

    def __init__(self) -> None:
        self.peer: Peer | None = None
        self.opened = anyio.Event()

    def act(self, first: Any = None) -> Act:
        async def run(server: Fake, peer: Peer, seen: Seen) -> None:
            await peer.send(fake.STREAM)
            if first is not None:
                await peer.send(fake.event(first(seen)))
            self.peer = peer
            self.opened.set()
            await fake.silence(peer)

        return run

    async def say(self, message: Json) -> None:
        await self.opened.wait()
        assert self.peer is not None
        await self.peer.send(fake.event(message))


async def test_what_is_told_before_the_stream_is_open_waits_for_it() -> None:
    async with endpoint(Fake(eras=("legacy",))) as (web, hub):
        await web.open()
        await web.call("tools/list")
        server = hub.servers["s"]
        for kind in ("prompts", "resources", "prompts"):
            hub.changed(server, f"notifications/{kind}/list_changed")
        async with web.streaming() as news:
            # Said twice, told once.
            assert (await news.event())["method"] == "notifications/prompts/list_changed"
            assert (await news.event())["method"] == "notifications/resources/list_changed"


async def test_a_second_stream_takes_over_from_the_first() -> None:
    async with endpoint(Fake(eras=("legacy",))) as (web, hub):
        await web.open()
        async with web.streaming() as first, web.streaming() as second:
            with pytest.raises(EOFError):
                await first.event()
            hub.changed(hub.servers["s"], "notifications/prompts/list_changed")
            assert (await second.event())["method"] == "notifications/prompts/list_changed"


async def test_the_end_of_a_session_ends_its_stream() -> None:
    async with endpoint(Fake(eras=("legacy",))) as (web, _):
        await web.open()
        async with web.streaming() as news:
            await web.request("DELETE")
            with pytest.raises(EOFError):
                await news.event()


# -- the modern era -----------------------------------------------------------------------------


def acknowledged(seen: Seen) -> Json:
    params = {"notifications": seen.message["params"]["notifications"]}
    return note("notifications/subscriptions/acknowledged", params)


@pytest.mark.parametrize("speaks", [("modern",), ("legacy",)])
async def test_a_modern_subscription_is_a_stream_of_what_was_asked_for(
    speaks: tuple[str, ...],
) -> None:
    server, stream = Fake(eras=speaks), Stream()
    server.acts["subscriptions/listen"] = [stream.act(acknowledged)]
    server.acts["GET"] = [stream.act()]
    async with endpoint(server) as (web, hub):
        await web.ask("tools/list")
        wanted = {
            "toolsListChanged": True,
            "promptsListChanged": False,
            "resourceSubscriptions": ["a:1"],
        }
        message, headers = web.modern("subscriptions/listen", {"notifications": wanted})
        async with web.streaming(message, headers) as news:
            first = await news.event()
            assert first["method"] == "notifications/subscriptions/acknowledged"
            assert first["params"]["notifications"] == {
                "toolsListChanged": True,
                "resourceSubscriptions": ["a:1"],
            }
            ours = {SUBSCRIPTION: message["id"]}
            assert first["params"]["_meta"] == ours
            theirs = {SUBSCRIPTION: "theirs"}
            await stream.say(note(UPDATED, {"uri": "a:1", "_meta": theirs}))
            assert await news.event() == note(UPDATED, {"uri": "a:1", "_meta": ours})
            # Not asked for, so not told.
            hub.changed(hub.servers["s"], "notifications/prompts/list_changed")
            await stream.say(note(CHANGED, {}))
            assert await news.event() == note(CHANGED, {"_meta": ours})
        await server.until(lambda: len(server.opened) == len(server.ended))
    if speaks == ("modern",):
        (listen,) = server.steps("subscriptions/listen")
        assert listen.headers["mcp-protocol-version"] == MODERN
        assert listen.message["params"]["notifications"]["resourceSubscriptions"] == ["a:1"]


async def test_the_queue_holds_what_there_is_to_tell_and_no_more() -> None:
    async with endpoint(Fake()) as (_, hub):
        news = News(hub, list(hub.servers.values()))
        for number in range(10_000):
            news.put(b"%d" % (number % 3))
        told: list[bytes] = []

        async def send(message: bytes) -> None:
            told.append(message)
            if len(told) == 3:
                news.end()

        await news.pour(send)
    assert told == [b"0", b"1", b"2"]
