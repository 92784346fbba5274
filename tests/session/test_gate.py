"""The tool gate over HTTP: what it is asked, and that whatever goes wrong denies."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest

from bridge import log as log_module
from bridge.errors import BridgeError
from bridge.session import gate as module
from bridge.session.gate import Gate
from protocol_schemas.host import ToolInterception
from tests.peers.servers import tool_gate

pytestmark = pytest.mark.anyio

SECRET = "gate-secret-CANARY"


def asking(url: str, secret: str = SECRET) -> Gate:
    return Gate(ToolInterception(url=url, secret=secret))


@contextmanager
def answering(*responses: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A raw HTTP server: one canned response a connection, `b""` closes unanswered."""
    asked: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for response in responses:
            peer, _ = listener.accept()
            with peer:
                data = b""
                while b"}" not in data:
                    data += peer.recv(65536)
                asked.append(data)
                peer.sendall(response)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/tool?x=1", asked
    finally:
        listener.close()
        thread.join(10)


def http(status: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


@pytest.mark.parametrize("verdict", ["allow", "deny", "stop"])
async def test_the_gate_is_asked_and_obeyed(verdict: str) -> None:
    with tool_gate() as there:
        there.decide = lambda question: verdict
        gate = asking(there.url, there.secret)
        assert await gate.verdict("call-1", {"a": "é"}) == verdict
        assert await gate.verdict("call-2", None) == verdict
        gate.close()
        assert there.asked == [
            {"tool_call_id": "call-1", "arguments": {"a": "é"}},
            {"tool_call_id": "call-2", "arguments": None},
        ]


async def test_each_question_is_noted_with_its_verdict_and_without_the_secret() -> None:
    noted: list[tuple[str, dict[str, Any]]] = []
    with answering(http("200 OK", b'{"action":"stop"}'), http("500 No", b"{}")) as (url, _):
        interception = ToolInterception(url=url, secret=SECRET)
        gate = Gate(interception, lambda kind, data: noted.append((kind, data)))
        await gate.verdict("a", {"x": 1})
        await gate.verdict("b", None)
        gate.close()
    assert [kind for kind, _ in noted] == ["gate", "gate"]
    first, second = (data for _, data in noted)
    assert (first["tool_call_id"], first["arguments"]) == ("a", {"x": 1})
    assert (first["verdict"], first["status"]) == ("stop", 200)
    assert (second["verdict"], second["status"]) == ("deny", 500)
    assert "status 500" in second["error"]
    assert first["seconds"] > 0
    assert SECRET not in str(noted)


async def test_what_goes_out_is_a_post_with_the_secret() -> None:
    with answering(http("200 OK", b'{"action":"allow"}')) as (url, asked):
        gate = asking(url)
        assert await gate.verdict("c", {}) == "allow"
        gate.close()
        head = asked[0].partition(b"\r\n\r\n")[0].lower()
        assert head.startswith(b"post /tool?x=1 http/1.1")
        assert f"authorization: bearer {SECRET}".lower().encode() in head
        assert b"content-type: application/json" in head


@pytest.mark.parametrize(
    "response",
    [
        http("500 Oh", b'{"action":"allow"}'),
        http("404 No", b'{"action":"allow"}'),
        http("302 Found", b'{"action":"allow"}'),
        http("200 OK", b"{}"),
        http("200 OK", b"[]"),
        http("200 OK", b'{"action":"ALLOW"}'),
        http("200 OK", b'{"action":["allow"]}'),
        http("200 OK", b"not json"),
        http("200 OK", b""),
        http("200 OK", b'{"action":"allow"' + b" " * (2 << 20) + b"}"),
        b'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"action":"allow"}',
        b"garbage\r\n\r\n",
        b"",
    ],
)
async def test_whatever_goes_wrong_denies_and_never_shows_the_secret(
    response: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[bytes] = []
    monkeypatch.setattr(log_module._handler, "sink", logged.append)
    with answering(response) as (url, _):
        gate = asking(url)
        assert await gate.verdict("call-1", {}) == "deny"
        gate.close()
    assert len(logged) == 1
    assert b"call-1" in logged[0]
    assert SECRET.encode() not in logged[0]


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "204-ish", "299 Fine"])
async def test_any_success_counts(status: str) -> None:
    response = http(status.replace("204-ish", "202 Accepted"), b'{"action":"allow"}')
    with answering(response) as (url, _):
        gate = asking(url)
        assert await gate.verdict("c", {}) == "allow"
        gate.close()


async def test_a_gate_that_is_not_there_denies() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    gate = asking(f"http://127.0.0.1:{port}/tool")
    assert await gate.verdict("c", {}) == "deny"
    gate.close()


async def test_a_gate_that_never_answers_denies_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        gate = asking(f"http://127.0.0.1:{silent.getsockname()[1]}/tool")
        with anyio.fail_after(10):
            assert await gate.verdict("c", {}) == "deny"
        gate.close()


async def test_being_cancelled_is_not_a_denial() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        gate = asking(f"http://127.0.0.1:{silent.getsockname()[1]}/tool")
        verdicts: list[str] = []

        async def ask() -> None:
            verdicts.append(await gate.verdict("c", {}))

        with anyio.move_on_after(0.1):
            await ask()
        assert verdicts == []
        gate.close()


@pytest.mark.parametrize(
    "url",
    ["", "tool", "ftp://x/tool", "http://x:99999/", "file:///tool", "http:///tool", "http://[::1"],
)
def test_a_url_that_is_not_http_is_refused_when_it_is_given(url: str) -> None:
    with pytest.raises(BridgeError, match="tool_interception") as caught:
        asking(url)
    assert caught.value.code == "invalid_request"
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("secret", ["CANARY\r\nX-Other: 1", "CANARY\n", "CANARY\0", "\ud800CANARY"])
def test_a_secret_that_no_header_can_carry_is_refused_and_not_shown(secret: str) -> None:
    with pytest.raises(BridgeError, match=r"tool_interception\.secret") as caught:
        asking("http://127.0.0.1:1/", secret)
    assert caught.value.code == "invalid_request"
    assert "CANARY" not in str(caught.value)


async def test_a_target_is_escaped_and_what_was_escaped_stays() -> None:
    with answering(http("200 OK", b'{"action":"allow"}')) as (url, asked):
        gate = asking(url.replace("tool?x=1", "a b/\u00e9/%20?q=\u00fc&r=a%2Fb#part"), "\u00e9")
        assert await gate.verdict("c", {}) == "allow"
        gate.close()
    head = asked[0].split(b"\r\n")
    assert head[0] == b"POST /a%20b/%C3%A9/%20?q=%C3%BC&r=a%2Fb HTTP/1.1"
    assert "Authorization: Bearer \u00e9".encode() in head
