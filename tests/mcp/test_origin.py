"""A server's HTTP side: its headers are for it alone, its cookies for one session."""

import gzip
import json
import zlib
from collections.abc import Callable

import pytest

from bridge.errors import RequestFailed
from bridge.mcp.service import McpProxy
from tests.mcp import fake
from tests.mcp.callers import QUICK, called, one_call
from tests.mcp.fake import Fake, Seen
from tests.mcp.test_http_front import endpoint
from tests.mcp.web import Web
from tests.raw import Peer, upstream

pytestmark = pytest.mark.anyio


async def test_headers_of_one_server_never_reach_another() -> None:
    first, second = Fake(eras=("legacy",)), Fake(eras=("legacy",))
    async with first.running(), second.running(), McpProxy(lambda event: None) as proxy:
        entries = [
            {
                "type": "http",
                "name": name,
                "url": server.url,
                "headers": [{"name": f"X-{name}", "value": name}],
            }
            for name, server in (("one", first), ("two", second))
        ]
        webs = [Web(entry["url"]) for entry in proxy.mount("a", entries, {"one": QUICK})]
        for web in webs:
            await web.open()
            first.acts["tools/call"] = [fake.says(307, b"", {"Location": second.url})]
            await web.call("tools/call", {"name": "echo"})
    for server, own, other in ((first, "x-one", "x-two"), (second, "x-two", "x-one")):
        assert server.seen
        for seen in server.seen:
            assert own in seen.headers
            assert other not in seen.headers


async def test_a_servers_cookies_live_as_long_as_its_session() -> None:
    async def sets(server: Fake, peer: Peer, seen: Seen) -> None:
        server.opened.append(f"s{len(server.opened) + 1}")
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
        headers = {
            "Mcp-Session-Id": server.opened[-1],
            "Set-Cookie": f"lb=node{len(server.opened)}; Path=/; HttpOnly",
        }
        await peer.send(fake.reply(200, fake.answer(seen.id, result), headers))

    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open()
        server.acts["initialize"] = [sets, sets]
        for _ in range(2):
            await web.call("tools/call", {"name": "echo"})
    assert [call.headers["cookie"] for call in server.steps("tools/call")] == [
        f"lb=node{number}" for number in (2, 3)
    ]
    assert all("cookie" not in seen.headers for seen in server.steps("initialize"))


async def test_a_connection_is_used_for_all_of_an_attempt() -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        proxy.mount("a", [{"type": "http", "name": "s", "url": server.url, "headers": []}])
        await proxy.list_tools("a")
        await server.until(lambda: len(server.ended) == 1)
        accepted = server.accepted
        await proxy.call_tool("a", "s_echo")
        await server.until(lambda: len(server.ended) == 2)
        assert server.accepted - accepted <= 1


async def test_a_configured_host_and_agent_go_before_ours() -> None:
    headers = [{"name": "Host", "value": "inner"}, {"name": "User-Agent", "value": "mine"}]
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        entry = {"type": "http", "name": "s", "url": server.url, "headers": headers}
        proxy.mount("a", [entry])
        await proxy.list_tools("a")
    for seen in server.seen:
        assert (seen.headers["host"], seen.headers["user-agent"]) == ("inner", "mine")


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_large_arguments_and_large_results_pass(era: str) -> None:
    text = "x" * (3 << 20)
    expected = {"content": [{"type": "text", "text": text}]}
    async with Fake(eras=(era,), result=expected).running() as server:
        result, _ = await called(server, {}, arguments={"text": text})
    result.pop("resultType", None)
    assert result == expected
    assert server.steps("tools/call")[0].message["params"]["arguments"] == {"text": text}


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_an_answer_that_comes_before_the_body_was_read_is_the_answer(era: str) -> None:
    async def refuses(server: Fake, peer: Peer, seen: Seen) -> None:
        await peer.send(fake.reply(413, "too large"))
        await fake.silence(peer)

    class Impatient(Fake):
        async def _read(self, peer: Peer) -> Seen:
            head = await peer.until(b"\r\n\r\n")
            size = (
                int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                if b"POST" in head
                else 0
            )
            if size > 1 << 20:
                # Its body is left unread.
                return Seen("POST", "/mcp", {}, {"method": "tools/call", "id": 0})
            peer.seen = head + peer.seen
            return await super()._read(peer)

    async with Impatient(eras=(era,)).running() as server:
        server.acts["tools/call"] = [refuses]
        result, events = await called(server, {}, arguments={"text": "x" * (16 << 20)})
    assert "HTTP 413: too large" in result["content"][0]["text"]
    assert [event["outcome"] for event in events] == ["rejected"]


async def test_a_server_behind_a_forward_proxy_is_asked_through_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heads: list[bytes] = []

    async def refuse(peer: Peer) -> None:
        heads.append(await peer.until(b"\r\n\r\n"))
        await peer.send(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")

    async with upstream(refuse) as port, McpProxy(lambda event: None) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", "")
        entry = {"type": "http", "name": "s", "url": "http://mcp.test/mcp", "headers": []}
        proxy.mount("a", [entry], {"s": QUICK})
        with pytest.raises(RequestFailed):
            await proxy.call_tool("a", "s_echo", {})
    assert heads[0].startswith(b"POST http://mcp.test/mcp HTTP/1.1\r\n")


def _encoded(kind: str, encode: Callable[[bytes], bytes], *, stream: bool = False) -> fake.Act:
    """An answer in an encoding, as JSON or as a stream of events."""

    async def run(server: Fake, peer: Peer, seen: Seen) -> None:
        found = fake.answer(seen.id, server.answer_to(seen))
        if stream:
            head = fake.STREAM.replace(
                b"\r\n\r\n", f"\r\nContent-Encoding: {kind}\r\n\r\n".encode()
            )
            await peer.send(head + encode(fake.event(found)))
            await peer.close()
        else:
            headers = {"Content-Type": "application/json", "Content-Encoding": kind}
            await peer.send(fake.reply(200, encode(json.dumps(found).encode()), headers))

    return run


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "kind, encode", [("gzip", gzip.compress), ("Deflate", zlib.compress), ("identity", bytes)]
)
async def test_an_answer_in_an_encoding_nobody_asked_for_is_an_answer(
    kind: str, encode: Callable[[bytes], bytes], stream: bool, era: str
) -> None:
    async with Fake(eras=(era,)).running() as server:
        server.acts["tools/call"] = [_encoded(kind, encode, stream=stream)]
        result, events = await called(server, {"delivery": "never"})
    assert result["content"] == [{"type": "text", "text": "ok"}]
    assert len(events) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_an_encoding_that_cannot_be_read_is_not_asked_for_again(stream: bool) -> None:
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [_encoded("compress", bytes, stream=stream)]
        result, events = await called(server, {})
    assert server.executed["echo"] == 1
    assert [event["outcome"] for event in events] == ["rejected"]
    assert "'compress'" in result["content"][0]["text"]


async def test_an_answer_is_bounded_by_what_it_grows_to() -> None:
    async with Fake(eras=("legacy",), result={"content": [], "x": "x" * 3_000_000}).running() as s:
        s.acts["tools/call"] = [_encoded("gzip", gzip.compress)]
        result, events = await called(s, {"max_result_bytes": 1_000_000})
    assert s.executed["echo"] == 1
    assert [event["outcome"] for event in events] == ["rejected"]
    assert "max_result_bytes" in result["content"][0]["text"]


@pytest.mark.parametrize(
    "given, sent", [("/a b", "/a%20b"), ("/é?x=é&y=%20", "/%C3%A9?x=%C3%A9&y=%20"), ("?q", "/?q")]
)
async def test_an_address_is_escaped_where_it_must_be(given: str, sent: str) -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        url = f"http://127.0.0.1:{server.port}{given}"
        proxy.mount("a", [{"type": "http", "name": "s", "url": url, "headers": []}])
        result = await one_call(proxy, "s", "echo")
    assert b"ok" in bytes(result)
    assert {seen.path for seen in server.seen} == {sent}
