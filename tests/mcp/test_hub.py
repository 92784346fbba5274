"""A hub: its servers are independent, its lists go by the client, its listeners are told."""

from typing import Any

import pytest

from bridge.mcp import eras, hub
from bridge.mcp.eras import Client
from bridge.mcp.service import McpProxy
from tests.mcp.callers import hub_of
from tests.mcp.fake import Fake
from tests.mcp.test_catalogue import entry

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


def client(era: eras.Era = "legacy", **capabilities: Any) -> Client:
    version = eras.LEGACY if era == "legacy" else eras.MODERN
    return Client(era, version, capabilities=capabilities)


async def test_most_servers_have_one_list_for_all() -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [entry("s", server)])
        found = hub_of(proxy)
        await found.listed(20)
        base = found.catalogues["s"]
        for one in (client(), client("modern"), client(experimental={}), client(tasks={})):
            assert found.catalogue("s", one) is base
        able = found.catalogue("s", client(sampling={}))
        assert able is not base
        assert found.catalogue("s", client("modern", sampling={})) is able
        assert found.catalogue("s", client(sampling={"x": 1})) is not able


async def test_a_server_of_two_eras_has_a_list_in_each() -> None:
    async with Fake().running() as server, McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [entry("s", server)])
        found = hub_of(proxy)
        await found.listed(20)
        assert found.catalogue("s", client("modern")) is found.catalogues["s"]
        assert found.catalogue("s", client("legacy")) is not found.catalogues["s"]


async def test_odd_clients_cannot_make_lists_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_MOST_LISTS", 2)
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [entry("s", server)])
        found = hub_of(proxy)
        await found.listed(20)
        lists = {id(found.catalogue("s", client(sampling={"n": n}))) for n in range(10)}
    assert len(lists) == 3


async def test_who_listens_is_told_until_it_no_longer_does() -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [entry("s", server)])
        found = hub_of(proxy)
        told: list[tuple[str, str]] = []
        stop = found.subscribe(lambda server, method: told.append((server, method)))
        one = found.servers["s"]
        found.changed(one, "notifications/prompts/list_changed")
        stop()
        stop()
        found.changed(one, "notifications/prompts/list_changed")
    assert told == [("s", "notifications/prompts/list_changed")]


async def test_describing_asks_once_and_only_in_eras_that_are_spoken() -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [entry("s", server)])
        found = hub_of(proxy)
        await found.listed(20)
        before = len(server.seen)
        for era in ("legacy", "modern"):
            await found.describe(found.servers["s"], era)
        assert len(server.seen) == before
