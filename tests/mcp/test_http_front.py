"""The endpoint over HTTP: who is let in, sessions, both eras, streams, leaving."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from bridge.mcp.service import McpProxy
from tests.mcp import fake
from tests.mcp.callers import FAILURE, QUICK
from tests.mcp.fake import Fake, Seen
from tests.mcp.web import MODERN, VERSION_KEY, Web
from tests.raw import Peer

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


@asynccontextmanager
async def endpoint(server: Fake, options: Json | None = None) -> AsyncGenerator[Web]:
    """A client of the server's own endpoint at a proxy in front of it."""
    async with server.running(), McpProxy(lambda event: None) as proxy:
        entry = {"type": "http", "name": "s", "url": server.url, "headers": []}
        (given,) = proxy.mount("a", [entry], {"s": {**QUICK, **(options or {})}})
        yield Web(given["url"])


# -- who is let in ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Host": "localhost"}, 200),
    ],
)
async def test_web_pages_of_other_origins_are_kept_out(headers: Json, status: int) -> None:
    async with endpoint(Fake()) as web:
        await web.open()
        got = await web.call("ping", headers=headers)
    assert got.status == status


async def test_only_the_unguessable_path_leads_anywhere() -> None:
    async with endpoint(Fake()) as web:
        right = web.path
        for path in ("/", "/mcp", "/mcp/s", f"{right}x", right.replace("/mcp/s", "/mcp/t")):
            web.path = path
            assert (await web.call("initialize", {})).status == 404
        web.path = right + "/"
        assert (await web.open()).status == 200


@pytest.mark.parametrize("verb", ["PUT", "PATCH", "OPTIONS", "HEAD"])
async def test_other_methods_are_told_what_is_allowed(verb: str) -> None:
    async with endpoint(Fake()) as web:
        peer = await web.send(verb)
        text = await peer.until(b"\r\n\r\n")
        await peer.close()
    assert b"405" in text
    assert b"Allow: GET, POST, DELETE" in text


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Accept": "text/html"}, 406),
        ({"Accept": None}, 200),
        ({"Accept": "*/*"}, 200),
        ({"Accept": "application/json"}, 200),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
    ],
)
async def test_what_is_sent_and_what_is_accepted(headers: Json, status: int) -> None:
    async with endpoint(Fake()) as web:
        await web.open()
        assert (await web.call("ping", headers=headers)).status == status


# -- legacy sessions ----------------------------------------------------------------------------


async def test_a_session_is_opened_used_and_ended() -> None:
    async with endpoint(Fake()) as web:
        opened = await web.open()
        assert opened.result["protocolVersion"] == "2025-11-25"
        assert opened.result["serverInfo"] == {"name": "fake", "version": "1"}
        assert opened.result["capabilities"]["tools"] == {"listChanged": True}
        listed = await web.call("tools/list")
        assert listed.result == {"tools": [fake.TOOL]}
        called = await web.call("tools/call", {"name": "echo", "arguments": {}})
        assert called.result == {"content": [{"type": "text", "text": "ok"}]}
        assert called.headers["content-type"] == "application/json"
        assert (await web.request("DELETE")).status == 204
        assert (await web.call("tools/list")).status == 404


@pytest.mark.parametrize(
    "asked, given",
    [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("1999-01-01", "2025-11-25"),
        (MODERN, "2025-11-25"),
    ],
)
async def test_the_version_is_the_callers_if_we_speak_it(asked: str, given: str) -> None:
    async with endpoint(Fake()) as web:
        opened = await web.open(version=asked)
    assert opened.result["protocolVersion"] == given


async def test_an_initialize_that_is_refused_opens_no_session() -> None:
    async with endpoint(Fake()) as web:
        got = await web.call("initialize", [1])
    assert got.error["code"] == -32602
    assert "mcp-session-id" not in got.headers


async def test_an_unknown_session_is_404_and_none_is_400() -> None:
    async with endpoint(Fake()) as web:
        for verb in ("POST", "GET", "DELETE"):
            body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}' if verb == "POST" else b""
            web.session = "no-such-session"
            assert (await web.request(verb, body)).status == 404
            web.session = None
            assert (await web.request(verb, body)).status == 400


async def test_a_session_of_one_endpoint_is_none_of_another() -> None:
    async with Fake().running() as server, McpProxy(lambda event: None) as proxy:
        entries = [
            {"type": "http", "name": name, "url": server.url, "headers": []} for name in "ab"
        ]
        first, second = [Web(entry["url"]) for entry in proxy.mount("x", entries)]
        await first.open()
        second.session = first.session
        assert (await second.call("ping")).status == 404
        assert (await first.call("ping")).status == 200


@pytest.mark.parametrize("body", [b"{", b"[]", b"3", b'"x"', b"{}", b'{"jsonrpc":"2.0"}', b"\xff"])
async def test_what_is_no_message_is_refused(body: bytes) -> None:
    async with endpoint(Fake()) as web:
        await web.open()
        got = await web.request("POST", body)
    assert got.status == 400
    assert got.error["code"] in (-32700, -32600)


async def test_a_batch_is_answered_in_its_order() -> None:
    async with endpoint(Fake()) as web:
        await web.open(version="2025-03-26")
        batch = [
            web.message("tools/call", {"name": "echo"}),
            {"jsonrpc": "2.0", "method": "notifications/x"},
            web.message("ping"),
        ]
        got = await web.post(batch)
        (answers,) = got.messages
        assert [answer["id"] for answer in answers] == [batch[0]["id"], batch[2]["id"]]
        assert (await web.post([batch[1]])).status == 202


async def test_ids_come_back_as_they_were() -> None:
    async with endpoint(Fake()) as web:
        await web.open()
        for ident in ("a", "7", 7, -1, 2**60):
            got = await web.post({"jsonrpc": "2.0", "id": ident, "method": "ping"})
            assert got.last == {"jsonrpc": "2.0", "id": ident, "result": {}}


# -- the modern era -----------------------------------------------------------------------------


async def test_a_modern_caller_needs_no_session() -> None:
    async with endpoint(Fake()) as web:
        found = await web.ask("server/discover")
        assert MODERN in found.result["supportedVersions"]
        assert found.result["resultType"] == "complete"
        assert "ttlMs" in found.result
        listed = await web.ask("tools/list")
        assert listed.result["tools"] == [fake.TOOL]
        assert (listed.result["cacheScope"], listed.result["ttlMs"]) == ("private", 0)
        called = await web.ask("tools/call", {"name": "echo", "arguments": {}})
        assert called.result["resultType"] == "complete"
        assert "mcp-session-id" not in called.headers


@pytest.mark.parametrize(
    "headers, meta, code, status",
    [
        ({"MCP-Protocol-Version": "2026-01-01"}, {}, -32020, 400),
        ({"MCP-Protocol-Version": None}, {}, -32020, 400),
        ({"Mcp-Method": "tools/list"}, {}, -32020, 400),
        ({"Mcp-Method": None}, {}, -32020, 400),
        ({"Mcp-Name": "other"}, {}, -32020, 400),
        ({"Mcp-Name": None}, {}, -32020, 400),
        ({"MCP-Protocol-Version": "2027-01-01"}, {VERSION_KEY: "2027-01-01"}, -32022, 400),
        ({}, {VERSION_KEY: 3}, -32602, 400),
        ({}, {"io.modelcontextprotocol/clientCapabilities": None}, -32602, 400),
    ],
)
async def test_headers_and_body_must_agree(
    headers: Json, meta: Json, code: int, status: int
) -> None:
    server = Fake()
    async with endpoint(server) as web:
        got = await web.ask("tools/call", {"name": "echo", "_meta": meta}, **headers)
    assert (got.error["code"], got.status) == (code, status)
    assert server.executed == {}


async def test_a_name_that_no_header_carries_travels_in_base64() -> None:
    server = Fake(tools=[{"name": "écho", "inputSchema": {}}])
    async with endpoint(server) as web:
        got = await web.ask("tools/call", {"name": "écho"}, **{"Mcp-Name": "=?base64?w6ljaG8=?="})
    assert got.result["content"]
    (call,) = server.steps("tools/call")
    assert call.headers["mcp-name"] == "=?base64?w6ljaG8=?="


@pytest.mark.parametrize(
    "method", ["ping", "initialize", "logging/setLevel", "resources/subscribe"]
)
async def test_what_the_modern_era_dropped_is_not_found(method: str) -> None:
    async with endpoint(Fake()) as web:
        got = await web.ask(method)
    assert (got.error["code"], got.status) == (-32601, 404)


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_the_modern_era_has_post_alone(verb: str) -> None:
    async with endpoint(Fake()) as web:
        got = await web.request(verb, headers={"MCP-Protocol-Version": MODERN})
    assert got.status == 405
    assert got.headers["allow"] == "POST"


async def test_modern_notifications_are_accepted_and_batches_are_not() -> None:
    async with endpoint(Fake()) as web:
        headers = {"MCP-Protocol-Version": MODERN}
        note = {"jsonrpc": "2.0", "method": "notifications/x"}
        assert (await web.post(note, headers)).status == 202
        message, mirrored = web.modern("tools/list")
        assert (await web.post([message], mirrored)).status == 400


# -- the servers' era ---------------------------------------------------------------------------


@pytest.mark.parametrize("caller", ["legacy", "modern"])
@pytest.mark.parametrize("speaks", [("legacy",), ("modern",), ("legacy", "modern")])
async def test_a_calls_era_is_the_callers_where_the_server_can(
    caller: str, speaks: tuple[str, ...]
) -> None:
    server = Fake(eras=speaks)
    async with endpoint(server) as web:
        if caller == "legacy":
            await web.open()
        for _ in range(2):
            if caller == "legacy":
                got = await web.call("tools/call", {"name": "echo"})
            else:
                got = await web.ask("tools/call", {"name": "echo"})
            assert got.result["content"] == [{"type": "text", "text": "ok"}]
            assert ("resultType" in got.result) is (caller == "modern" or "legacy" not in speaks)
    expected = caller if caller in speaks else speaks[0]
    for call in server.steps("tools/call"):
        modern = call.headers.get("mcp-protocol-version") == MODERN
        assert modern is (expected == "modern")
        assert (VERSION_KEY in call.meta) is modern
        assert ("mcp-session-id" in call.headers) is not modern
    assert len(server.steps("server/discover")) <= 2


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_no_verdict_on_an_era_is_made_of_a_server_in_trouble(status: int) -> None:
    server = Fake(eras=("legacy", "modern"))
    async with endpoint(server) as web:
        await web.open()
        server.acts["server/discover"] = [fake.says(status)]
        await web.ask("tools/call", {"name": "echo"})
        await web.open()
        server.seen.clear()
        await web.ask("tools/call", {"name": "echo"})
    (call,) = server.steps("tools/call")
    if status != 500:
        assert call.headers["mcp-protocol-version"] == MODERN


# -- leaving ------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_caller_who_leaves_ends_the_call(era: str) -> None:
    server = Fake(eras=(era,))
    left = anyio.Event()

    async def waits(server: Fake, peer: Peer, seen: Seen) -> None:
        try:
            await fake.silence(peer)
        finally:
            left.set()

    async with endpoint(server) as web:
        if era == "legacy":
            await web.open()
            message, headers = web.message("tools/call", {"name": "echo"}), {}
        else:
            message, headers = web.modern("tools/call", {"name": "echo"})
        server.acts["tools/call"] = [waits]
        peer = await web.send("POST", json.dumps(message).encode(), headers)
        await server.until(lambda: bool(server.steps("tools/call")))
        await peer.close()
        await left.wait()
        await server.until(lambda: len(server.opened) == len(server.ended))
        if era == "legacy":
            assert len(server.steps("notifications/cancelled")) == 1
        assert len(server.steps("tools/call")) == 1


async def test_a_cancelled_call_ends_and_is_not_tried_again() -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open()
        server.acts["tools/call"] = [fake.hangs]
        message = web.message("tools/call", {"name": "echo"})
        got: list[Any] = []

        async def call() -> None:
            got.append(await web.post(message))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await server.until(lambda: bool(server.steps("tools/call")))
            params = {"requestId": message["id"], "reason": "enough"}
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            assert (await web.post(note)).status == 202
        await server.until(lambda: len(server.opened) == len(server.ended))
    assert got[0].result["_meta"][FAILURE]["code"] == "cancelled"
    assert len(server.steps("tools/call")) == 1
    assert len(server.steps("notifications/cancelled")) == 1
