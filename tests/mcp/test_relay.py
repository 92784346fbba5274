"""What a server says while it works reaches the caller: verbatim, in order, and only the caller."""

import json
from typing import Any

import pytest

from tests.mcp import fake
from tests.mcp.fake import Act, Fake, Seen
from tests.mcp.test_http_front import endpoint
from tests.raw import Peer

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


def streams(*messages: Json, then: str = "answer") -> Act:
    """Notifications on the call's stream, and the answer (or the end). A progress token in them
    becomes the call's own."""

    async def run(server: Fake, peer: Peer, seen: Seen) -> None:
        await peer.send(fake.STREAM)
        for message in messages:
            params = dict(message.get("params", {}))
            if "progressToken" in params:
                params["progressToken"] = seen.meta.get("progressToken", params["progressToken"])
            await peer.send(fake.event({**message, "params": params}))
        if then == "answer":
            await peer.send(fake.event(fake.answer(seen.id, server.answer_to(seen))))
        await peer.close()

    return run


def progress(value: float, **more: Any) -> Json:
    params = {"progressToken": "ours", "progress": value, **more}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def note(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


RESULTS: dict[str, Json] = {
    "blocks of every kind": {
        "content": [
            {"type": "text", "text": "a", "annotations": {"audience": ["user"], "x": 1}},
            {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
            {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "f:///x", "blob": "AA==", "more": None}},
            {"type": "resource_link", "uri": "f:///y", "name": "y", "size": 2**60},
            {"type": "mood", "level": [1, {"deep": None}]},
            {"type": "text", "text": "b\u2028c \U0001f600 é"},
        ]
    },
    "structured content beside text": {
        "content": [{"type": "text", "text": "{}"}],
        "structuredContent": {"rows": [], "n": 1.5e-7, "none": None},
    },
    "no content": {"content": []},
    "structured content alone": {"structuredContent": {}},
    "unknown members and _meta": {"content": [], "_meta": {"a.b/c": [1]}, "x-vendor": {"k": 1}},
    "a failure": {"content": [{"type": "text", "text": "no such row"}], "isError": True},
    "nothing at all": {},
}


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("name", RESULTS)
async def test_results_are_relayed_as_they_are(name: str, era: str) -> None:
    expected = RESULTS[name]
    async with endpoint(Fake(eras=(era,), result={**expected, "": 0})) as web:
        if era == "legacy":
            await web.open()
            got = await web.call("tools/call", {"name": "echo"})
        else:
            got = await web.ask("tools/call", {"name": "echo"})
    found = dict(got.result)
    if era == "modern":
        assert found.pop("resultType") == "complete"
    assert found == {**expected, "": 0}


@pytest.mark.parametrize(
    "data",
    [
        b'{"content":[{"type":"text","text":"\\ud83d alone"}]}',
        b'{"content":[], "n": 1.0, "big": 123456789012345678901234567890, "e": 1E2}',
        b'{\n  "content": [\n  ]\n}',
        b'{"content":[{"type":"text","text":"\xe2\x80\xa8"}]}',
    ],
)
@pytest.mark.parametrize("way", ["body", "stream"])
async def test_json_is_equal_whatever_way_it_is_written(data: bytes, way: str) -> None:
    async def answers(server: Fake, peer: Peer, seen: Seen) -> None:
        line = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (seen.id, data)
        if way == "body":
            head = (
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            )
            await peer.send(head % len(line) + line)
        else:
            lines = b"".join(b"data: %b\n" % part for part in line.split(b"\n"))
            await peer.send(fake.STREAM + lines + b"\n")
            await peer.close()

    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open()
        server.acts["tools/call"] = [answers]
        got = await web.call("tools/call", {"name": "echo"})
    assert got.result == json.loads(data)


async def test_progress_carries_the_callers_token_and_comes_before_the_answer() -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open()
        server.acts["tools/call"] = [streams(progress(1, total=2, message="m", x=1), progress(2))]
        got = await web.call("tools/call", {"name": "echo", "_meta": {"progressToken": "mine"}})
    first, second, answer = got.messages
    assert first["params"] == {
        "progressToken": "mine",
        "progress": 1,
        "total": 2,
        "message": "m",
        "x": 1,
    }
    assert second["params"] == {"progressToken": "mine", "progress": 2}
    assert answer["result"]["content"]


@pytest.mark.parametrize("token", [0, 7, "", "t", 2**53])
async def test_any_token_is_given_back_as_it_was(token: Any) -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open()
        server.acts["tools/call"] = [streams(progress(1))]
        got = await web.call("tools/call", {"name": "echo", "_meta": {"progressToken": token}})
    assert got.messages[0]["params"]["progressToken"] == token


async def test_progress_that_nobody_asked_for_is_not_relayed() -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open()
        server.acts["tools/call"] = [streams(progress(1))]
        got = await web.call("tools/call", {"name": "echo"})
    assert len(got.messages) == 1
    (call,) = server.steps("tools/call")
    assert "progressToken" not in call.meta


async def test_progress_never_goes_back_over_attempts() -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open()
        server.acts["tools/call"] = [
            streams(progress(1, total=3), progress(2, total=3), progress(2), then="end"),
            streams(progress(0, total=3), progress(1, total=3), progress(0.5), then="end"),
            streams(progress(1, total=3), progress(3, total=3)),
        ]
        got = await web.call("tools/call", {"name": "echo", "_meta": {"progressToken": 1}})
    *told, answer = got.messages
    values = [message["params"]["progress"] for message in told]
    assert values == [1, 2, 3, 4, 6]
    assert [message["params"]["total"] for message in told] == [3, 3, 5, 6, 6]
    assert answer["result"]["content"]


async def test_other_notifications_pass_as_they_are() -> None:
    server = Fake(eras=("legacy",))
    log = note("notifications/message", {"level": "info", "data": {"a": [1.5]}, "logger": "l"})
    odd = note("notifications/acme/thing", {"x": None})
    async with endpoint(server) as web:
        await web.open()
        server.acts["tools/call"] = [streams(log, odd)]
        got = await web.call("tools/call", {"name": "echo"})
    assert got.messages[:2] == [log, odd]


async def test_a_caller_that_takes_no_stream_gets_the_answer_alone() -> None:
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open()
        server.acts["tools/call"] = [streams(note("notifications/message", {"data": 1}))]
        got = await web.call("tools/call", {"name": "echo"}, {"Accept": "application/json"})
    assert got.headers["content-type"] == "application/json"
    assert got.result["content"]


# -- what does not cross ------------------------------------------------------------------------


async def test_nothing_of_the_callers_hop_reaches_a_server() -> None:
    server = Fake(eras=("legacy", "modern"))
    async with endpoint(server) as web:
        await web.open()
        headers = {"Authorization": "Bearer caller", "Cookie": "c=1", "X-Odd": "1"}
        meta = {"progressToken": "mine", "traceparent": "00-1", "a.b/c": {"k": 1.0}}
        await web.call("tools/call", {"name": "echo", "_meta": meta}, headers)
        await web.ask("tools/call", {"name": "echo", "_meta": meta}, **headers)
    for call in server.steps("tools/call"):
        for name in ("authorization", "cookie", "x-odd"):
            assert name not in call.headers
        assert call.headers.get("mcp-session-id") != web.session
        assert call.meta["traceparent"] == "00-1"
        assert call.meta["a.b/c"] == {"k": 1.0}
        assert call.meta["progressToken"] != "mine"


async def test_a_callers_own_key_is_kept() -> None:
    key = "dev.acp-mcp-bridge/idempotency-key"
    server = Fake(eras=("legacy",))
    async with endpoint(server) as web:
        await web.open()
        server.acts["tools/call"] = [fake.closes]
        meta = {key: "theirs", "dev.acp-mcp-bridge/attempt": 9}
        await web.call("tools/call", {"name": "echo", "_meta": meta})
    calls = server.steps("tools/call")
    assert [call.meta[key] for call in calls] == ["theirs", "theirs"]
    assert [call.meta["dev.acp-mcp-bridge/attempt"] for call in calls] == [1, 2]
