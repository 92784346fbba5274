"""A hub: its servers are independent, its lists go by the client, its listeners are told."""

from typing import Any

import anyio
import pytest

from bridge.mcp import eras, hub
from bridge.mcp.call import moment
from bridge.mcp.eras import Client
from bridge.mcp.service import McpProxy
from bridge.wire import codec
from tests import raw
from tests.mcp import fake
from tests.mcp.callers import hub_of, one_call, outcome
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


# -- ending calls -------------------------------------------------------------------------------


async def _ended(proxy: McpProxy, server: Fake, step: str = "tools/call") -> Json:
    """The result of a call that was ended once the server had got `step`."""
    results: list[Json] = []

    async def call() -> None:
        results.append(codec.decode(await one_call(proxy, "s", "echo")))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await server.until(lambda: len(server.steps(step)) > 0)
        hub_of(proxy).end_calls(before=moment())
    return results[0]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_call_that_is_ended_is_cancelled_at_the_server(era: str) -> None:
    events: list[Json] = []
    async with Fake(eras=(era,)).running() as server:
        server.acts["tools/call"] = [fake.hangs]
        async with McpProxy(events.append) as proxy:
            proxy.mount("a", [entry("s", server)])
            await hub_of(proxy).listed(20)
            result = await _ended(proxy, server)
            told = server.steps("notifications/cancelled")
            if era == "legacy":
                await server.until(lambda: len(server.opened) == len(server.ended))
                told = server.steps("notifications/cancelled")
                assert [note.message["params"]["requestId"] for note in told] == [
                    server.steps("tools/call")[0].id
                ]
            else:
                assert told == []
            fresh = await one_call(proxy, "s", "echo")
    assert outcome(result) == "cancelled"
    assert "the turn it was made in was cancelled" in result["content"][0]["text"]
    assert "The outcome is unknown" in result["content"][0]["text"]
    assert [(e["outcome"], e["cause"]) for e in events] == [
        ("cancelled", "the turn it was made in was cancelled"),
        ("answer", None),
    ]
    assert b"ok" in bytes(fresh)


async def test_a_call_that_is_ended_between_attempts_has_no_further_one() -> None:
    failed = anyio.Event()
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [fake.says(503)]
        async with McpProxy(lambda event: failed.set()) as proxy:
            slow = {"backoff": {"initial": 60, "max": 60}}
            proxy.mount("a", [entry("s", server)], {"s": slow})
            await hub_of(proxy).listed(20)
            results: list[Json] = []

            async def call() -> None:
                results.append(codec.decode(await one_call(proxy, "s", "echo")))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await failed.wait()
                hub_of(proxy).end_calls(before=moment())
    assert outcome(results[0]) == "cancelled"
    assert "unknown" not in results[0]["content"][0]["text"]
    assert len(server.steps("tools/call")) == 1


async def test_a_call_whose_tool_is_still_looked_up_is_never_made() -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [entry("s", server)])
        await hub_of(proxy).listed(20)
        go = anyio.Event()

        async def waits(_: Fake, peer: raw.Peer, seen: fake.Seen) -> None:
            await go.wait()
            server.tools.append({"name": "late", "inputSchema": {"type": "object"}})
            await server.behave(peer, seen)

        before = len(server.steps("tools/list"))
        server.acts["tools/list"] = [waits]
        results: list[Json] = []

        async def call() -> None:
            results.append(codec.decode(await one_call(proxy, "s", "late")))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await server.until(lambda: len(server.steps("tools/list")) > before)
            hub_of(proxy).end_calls(before=moment())
            go.set()
    assert outcome(results[0]) == "cancelled"
    assert server.steps("tools/call") == []


async def test_what_began_later_and_what_is_the_hosts_goes_on() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        go = anyio.Event()

        async def waits(_: Fake, peer: raw.Peer, seen: fake.Seen) -> None:
            await go.wait()
            await server.behave(peer, seen)

        server.acts["tools/call"] = [waits, waits]
        async with McpProxy(lambda event: None) as proxy:
            proxy.mount("a", [entry("s", server)])
            await hub_of(proxy).listed(20)
            results: list[Json] = []

            async def host() -> None:
                results.append(codec.decode(await proxy.call_tool("a", "s_echo", {})))

            async def agent() -> None:
                results.append(codec.decode(await one_call(proxy, "s", "echo")))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(host)
                await server.until(lambda: len(server.steps("tools/call")) == 1)
                before = moment()
                tasks.start_soon(agent)
                await server.until(lambda: len(server.steps("tools/call")) == 2)
                hub_of(proxy).end_calls(before=before)
                go.set()
    assert [outcome(result) for result in results] == ["answered", "answered"]
    assert server.steps("notifications/cancelled") == []


async def test_a_call_that_its_caller_has_ended_already_is_not_ended_again() -> None:
    events: list[Json] = []
    async with Fake(eras=("legacy",)).running() as server, McpProxy(events.append) as proxy:
        proxy.mount("a", [entry("s", server)])
        await hub_of(proxy).listed(20)
        server.acts["tools/call"] = [fake.hangs]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one_call, proxy, "s", "echo")
            await server.until(lambda: bool(server.steps("tools/call")))
            tasks.cancel_scope.cancel()
        hub_of(proxy).end_calls(before=moment())
        await server.until(lambda: len(server.opened) == len(server.ended))
    assert len(server.steps("notifications/cancelled")) == 1
    assert [(event["outcome"], event["cause"]) for event in events] == [("cancelled", None)]
