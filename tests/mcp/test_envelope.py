"""Modern POSTs: what is let through, and which fault answers first."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp import envelope, eras
from bridge.mcp.envelope import Opened, Refusal
from bridge.wire import codec
from bridge.wire.jsonrpc import Notification

Json = dict[str, Any]
META = {eras.VERSION_KEY: eras.MODERN, eras.CAPABILITIES_KEY: {}}
HEADERS = [
    (b"MCP-Protocol-Version", eras.MODERN.encode()),
    (b"mcp-method", b"tools/call"),
    (b"Mcp-Name", b"echo"),
]


def body(meta: Json | None = None, **more: Any) -> bytes:
    params = {"name": "echo", "_meta": META if meta is None else meta}
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params, **more}
    return codec.encode(message)


def test_a_request_that_agrees_with_its_headers_is_opened() -> None:
    found = envelope.opened(body(), HEADERS)
    assert isinstance(found, Opened)
    assert found.request.id == b"7"
    assert found.client.version == eras.MODERN
    assert found.headers["mcp-name"] == ["echo"]


@pytest.mark.parametrize("twice", HEADERS)
def test_a_routing_header_that_comes_twice_is_refused(twice: tuple[bytes, bytes]) -> None:
    found = envelope.opened(body(), [*HEADERS, twice])
    assert isinstance(found, Refusal)
    assert (found.code, found.status, found.id) == (eras.HEADER_MISMATCH, 400, b"7")
    assert "more than once" in found.message


def test_what_is_missing_in_meta_goes_before_what_is_wrong_in_headers() -> None:
    found = envelope.opened(body(meta={}), [])
    assert isinstance(found, Refusal)
    assert found.code == -32602


@pytest.mark.parametrize(
    "data, code",
    [(b"{", -32700), (b"\xff", -32700), (b"[]", -32600), (b"3", -32600), (b"{}", -32600),
     (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600)],
)  # fmt: skip
def test_what_is_no_request_is_refused(data: bytes, code: int) -> None:
    found = envelope.opened(data, HEADERS)
    assert isinstance(found, Refusal)
    assert (found.code, found.status) == (code, 400)


def test_a_notification_is_one() -> None:
    assert isinstance(envelope.opened(b'{"jsonrpc":"2.0","method":"x"}', []), Notification)


def test_a_body_can_say_by_itself_that_it_is_modern() -> None:
    assert envelope.is_modern(body())
    assert envelope.is_modern(body(meta={eras.VERSION_KEY: "2099-01-01"}))
    assert not envelope.is_modern(body(meta={}))
    assert not envelope.is_modern(body(meta={eras.VERSION_KEY: eras.LEGACY}))
    # A value that only mentions the key says nothing.
    assert not envelope.is_modern(body(meta={"k": eras.VERSION_KEY}))


@pytest.mark.parametrize(
    "code, status", [(-32700, 400), (-32602, 400), (-32601, 404), (-32020, 400), (-32603, 200)]
)
def test_some_errors_have_a_status_of_their_own(code: int, status: int) -> None:
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m"}}
    assert envelope.status_of(codec.encode(error)) == status


def test_a_result_that_speaks_of_errors_is_a_result() -> None:
    assert envelope.status_of(b'{"jsonrpc":"2.0","id":1,"result":{"error":1}}') == 200


@given(st.binary(max_size=60), st.lists(st.tuples(st.binary(max_size=8), st.binary(max_size=8))))
def test_nothing_that_is_sent_raises(data: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    assert envelope.opened(data, headers) is not None
    assert envelope.is_modern(data) in (True, False)
