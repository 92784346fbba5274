"""What is known of a server: its eras, what it says of itself, what must not be said of it."""

from typing import Any

import anyio
import pytest

from bridge.io.family import Family
from bridge.mcp import session
from bridge.mcp.server import Server
from bridge.mcp.service import McpProxy
from bridge.mcp.settings import from_acp
from tests.mcp import fake
from tests.mcp.callers import QUICK, hub_of
from tests.mcp.fake import Fake
from tests.mcp.test_catalogue import entry
from tests.mcp.web import MODERN, Web

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


async def listed(server: Fake, proxy: McpProxy) -> Server:
    proxy.mount("a", [entry("s", server)], {"s": QUICK})
    await proxy.list_tools("a")
    return hub_of(proxy).servers["s"]


@pytest.mark.parametrize(
    "speaks, known",
    [
        (("legacy",), {"modern": False, "legacy": True}),
        (("modern",), {"modern": True, "legacy": False}),
        (("legacy", "modern"), {"modern": True, "legacy": True}),
    ],
)
async def test_a_servers_eras_are_learnt_once(speaks: tuple[str, ...], known: Json) -> None:
    async with Fake(eras=speaks).running() as server, McpProxy(lambda event: None) as proxy:
        found = await listed(server, proxy)
        assert found.verdicts.known == known
        probes = len(server.steps("server/discover"))
        for _ in range(3):
            await proxy.call_tool("a", "s_echo")
        assert len(server.steps("server/discover")) == probes


@pytest.mark.parametrize(
    "trouble", [fake.says(500), fake.says(502), fake.closes, fake.says(200, "")]
)
async def test_trouble_is_no_verdict(trouble: fake.Act) -> None:
    async with Fake().running() as server, McpProxy(lambda event: None) as proxy:
        server.acts["server/discover"] = [trouble]
        found = await listed(server, proxy)
    assert found.verdicts.known["modern"] is None
    assert found.verdicts.known["legacy"] is True


async def test_a_probe_that_is_never_answered_is_given_up_and_not_repeated_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "_PROBE_WAIT", 0.05)
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        server.acts["server/discover"] = [fake.hangs] * 9
        found = await listed(server, proxy)
        assert found.verdicts.known["modern"] is None
        view = hub_of(proxy)
        web = Web(f"http://{proxy.authority}/{proxy._mounted['a'].token}/mcp/s")
        probes = len(server.steps("server/discover"))
        for _ in range(3):
            assert (await web.ask("tools/call", {"name": "echo"})).result["content"]
        assert len(server.steps("server/discover")) == probes
        assert view.servers["s"].verdicts.known["legacy"] is True


async def test_a_server_that_refuses_our_version_and_names_it_is_asked_again() -> None:
    refusal = {"code": -32022, "message": "no", "data": {"supported": [MODERN]}}

    async def refuses(server: Fake, peer: Any, seen: fake.Seen) -> None:
        body = {"jsonrpc": "2.0", "id": seen.id, "error": refusal}
        await peer.send(fake.reply(400, body))

    async with Fake(eras=("modern",)).running() as server, McpProxy(lambda event: None) as proxy:
        server.acts["server/discover"] = [refuses]
        found = await listed(server, proxy)
        server.acts["tools/call"] = [refuses]
        await proxy.call_tool("a", "s_echo")
    assert found.verdicts.known["modern"] is True
    assert server.executed == {"echo": 1}


async def test_a_server_that_turns_legacy_is_served_as_that() -> None:
    async with Fake(eras=("modern",)).running() as server, McpProxy(lambda event: None) as proxy:
        found = await listed(server, proxy)
        server.eras = ("legacy",)
        server.acts["tools/call"] = [fake.refuses(-32022, 400)]
        await proxy.call_tool("a", "s_echo")
    assert server.executed == {"echo": 1}
    assert found.verdicts.known == {"modern": False, "legacy": True}


@pytest.mark.parametrize("before, after", [("legacy", "modern"), ("modern", "legacy")])
async def test_a_server_that_was_replaced_by_one_of_another_era_is_met_anew(
    before: str, after: str
) -> None:
    async with Fake(eras=(before,)).running() as server, McpProxy(lambda event: None) as proxy:
        await listed(server, proxy)
        server.eras = (after,)
        # The first call may find it out; it is not executed then.
        await proxy.call_tool("a", "s_echo")
        executed = server.executed["echo"]
        result = await proxy.call_tool("a", "s_echo")
    assert b"ok" in bytes(result)
    assert server.executed["echo"] == executed + 1


async def test_what_a_server_says_of_itself_is_said_in_the_callers_era() -> None:
    async with Fake().running() as server, McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [entry("s", server)], {"s": QUICK})
        await hub_of(proxy).listed(20)
        found = hub_of(proxy).servers["s"]
        assert set(found.abouts) == {"modern"}
        server.capabilities = {"tools": {}, "prompts": {"listChanged": True}}
        web = Web(f"http://{proxy.authority}/{proxy._mounted['a'].token}/mcp/s")
        opened = await web.open()
        assert opened.result["capabilities"]["prompts"] == {"listChanged": True}
    assert set(found.abouts) == {"legacy", "modern"}


async def test_secrets_are_in_no_word_about_a_server() -> None:
    given = [
        {
            "type": "http",
            "name": "s",
            "url": "http://127.0.0.1:9/",
            "headers": [{"name": "Authorization", "value": "Bearer abcdef123"}],
        },
        {
            "name": "l",
            "command": "x",
            "args": [],
            "env": [{"name": "K", "value": "hunter22"}, {"name": "N", "value": "1"}],
        },
    ]
    async with anyio.create_task_group() as tasks:
        one, two = (Server(upstream, Family(), tasks) for upstream in from_acp(given, {}, {}))
        assert one.masked("it said abcdef123 and Bearer abcdef123.") == "it said *** and ***."
        assert two.masked("hunter22, 1") == "***, 1"
        one.close()
        two.close()
