"""Subscriptions: a session that lasts, opened anew where it breaks, ended with its subscriber."""

import pytest

from bridge.mcp import watch
from tests.mcp import fake
from tests.mcp.fake import Fake
from tests.mcp.test_news import CHANGED, UPDATED, Stream, endpoint
from tests.mcp.test_relay import note

pytestmark = pytest.mark.anyio


async def test_a_subscription_lasts_longer_than_its_request() -> None:
    server, stream = Fake(eras=("legacy",)), Stream()
    async with endpoint(server) as (web, _):
        await web.open()
        await web.call("tools/list")
        server.acts["GET"] = [stream.act()]
        assert (await web.call("resources/subscribe", {"uri": "a:1"})).result == {}
        async with web.streaming() as news:
            await stream.say(note(UPDATED, {"uri": "a:1", "title": "t"}))
            assert await news.event() == note(UPDATED, {"uri": "a:1"})
            await stream.say(note(CHANGED, {}))
            assert (await news.event())["method"] == CHANGED
        # Asked for twice: to learn the server's answer, and in the session that lasts.
        assert len(server.steps("resources/subscribe")) == 2
        await web.request("DELETE")
        await server.until(lambda: len(server.opened) == len(server.ended))


async def test_a_subscription_the_server_refuses_is_none() -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as (web, _):
        await web.open()
        server.acts["resources/subscribe"] = [fake.refuses(-32601)]
        got = await web.call("resources/subscribe", {"uri": "a:1"})
        assert got.error["code"] == -32601
        await server.until(lambda: len(server.opened) == len(server.ended))
    assert server.steps("GET") == []


async def test_a_watched_server_that_comes_back_is_watched_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "_PAUSE", 0.01)
    server, stream = Fake(eras=("legacy",)), Stream()
    async with endpoint(server) as (web, _):
        await web.open()
        await web.call("tools/list")
        server.acts["GET"] = [fake.closes, stream.act()]
        await web.call("resources/subscribe", {"uri": "a:1"})
        async with web.streaming() as news:
            await stream.say(note(UPDATED, {"uri": "a:1"}))
            assert (await news.event())["method"] == UPDATED
    uris = [seen.message["params"]["uri"] for seen in server.steps("resources/subscribe")]
    assert uris == ["a:1"] * 3
