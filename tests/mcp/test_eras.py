"""What is stamped onto a request for a server, what stays of the caller's, and the verdicts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp import eras, messages
from bridge.mcp.eras import Client, Era, Verdicts
from bridge.wire import codec, jsonrpc
from bridge.wire.codec import Raw

Json = dict[str, Any]
CALLER = Client("legacy", "2025-06-18", {"name": "c"}, {"sampling": {}, "tasks": {}})


def stamped(params: Json, era: Era, **options: Any) -> Json:
    members = messages.members(codec.encode(params)) or {}
    return codec.decode(codec.encode(eras.outgoing(members, CALLER, era, **options)))


def test_initialize_is_the_callers_own_but_for_what_cannot_be_passed_on() -> None:
    assert eras.initialize(CALLER) == {
        "protocolVersion": "2025-06-18",
        "capabilities": {"sampling": {}},
        "clientInfo": {"name": "c"},
    }
    modern = Client("modern", eras.MODERN, {"name": "m"})
    assert eras.initialize(modern)["protocolVersion"] == eras.LEGACY


def test_a_legacy_request_carries_no_protocol_fields() -> None:
    params = {"name": "x", "_meta": {"progressToken": 1, "a.b/c": 2, eras.VERSION_KEY: "v"}}
    assert stamped(params, "legacy") == {"name": "x", "_meta": {"a.b/c": 2}}
    assert stamped({"name": "x", "_meta": {"progressToken": 1}}, "legacy") == {"name": "x"}
    assert stamped({"name": "x"}, "legacy", token=7) == {"name": "x", "_meta": {"progressToken": 7}}


def test_a_modern_request_says_who_calls() -> None:
    meta = stamped({"_meta": {"traceparent": "t"}}, "modern")["_meta"]
    assert meta == {
        "traceparent": "t",
        eras.VERSION_KEY: eras.MODERN,
        eras.INFO_KEY: {"name": "c"},
        eras.CAPABILITIES_KEY: {"sampling": {}, "tasks": {}},
    }


def test_the_log_level_goes_with_the_caller() -> None:
    params = eras.outgoing({}, CALLER._replace(log_level="debug"), "modern")
    assert params["_meta"][eras.LOG_LEVEL_KEY] == "debug"


def test_a_callers_key_stays_and_its_attempt_number_does_not() -> None:
    meta = {eras.KEY_META: "theirs", eras.ATTEMPT_META: 5}
    more = {eras.KEY_META: "ours", eras.ATTEMPT_META: 1}
    assert stamped({"_meta": meta}, "legacy", more=more)["_meta"] == {
        eras.KEY_META: "theirs",
        eras.ATTEMPT_META: 1,
    }


def modern_meta(**more: Any) -> messages.Members:
    meta = {eras.VERSION_KEY: eras.MODERN, eras.CAPABILITIES_KEY: {"roots": {}}, **more}
    return messages.members(codec.encode(meta)) or {}


def test_a_modern_caller_is_read_off_its_request() -> None:
    found = eras.caller_of(modern_meta(**{eras.LOG_LEVEL_KEY: "info"}))
    assert isinstance(found, Client)
    assert (found.era, found.version, found.log_level) == ("modern", eras.MODERN, "info")
    assert set(found.capabilities) == {"roots"}


@pytest.mark.parametrize(
    "meta, words",
    [
        ({}, "lacks"),
        ({eras.VERSION_KEY: eras.MODERN}, "clientCapabilities"),
        ({eras.VERSION_KEY: 3, eras.CAPABILITIES_KEY: {}}, "string"),
        ({eras.VERSION_KEY: "v", eras.CAPABILITIES_KEY: None}, "object"),
    ],
)
def test_what_a_modern_request_lacks_is_said(meta: Json, words: str) -> None:
    found = eras.caller_of(messages.members(codec.encode(meta)) or {})
    assert isinstance(found, str)
    assert words in found


@pytest.mark.parametrize("token", [b"1", b'"t"', b"1.5"])
def test_a_token_keeps_its_bytes(token: bytes) -> None:
    params = {"_meta": Raw(b'{"progressToken":' + token + b"}")}
    found = eras.token_of(params)
    assert found is not None
    assert bytes(found) == token


@pytest.mark.parametrize(
    "params", [{}, {"_meta": Raw(b"{}")}, {"_meta": Raw(b'{"progressToken":null}')}]
)
def test_no_token_is_none(params: dict[str, Raw]) -> None:
    assert eras.token_of(params) is None


@pytest.mark.parametrize(
    "known, preferred, order",
    [
        ({}, "legacy", ["legacy", "modern"]),
        ({}, "modern", ["modern", "legacy"]),
        ({"modern": True}, "modern", ["modern"]),
        ({"modern": True}, "legacy", ["legacy", "modern"]),
        ({"modern": False}, "modern", ["legacy"]),
        ({"modern": False}, "legacy", ["legacy"]),
        ({"legacy": False, "modern": True}, "legacy", ["modern"]),
        ({"legacy": False, "modern": False}, "legacy", ["legacy"]),
    ],
)
def test_the_callers_era_comes_first_unless_the_server_said_no(
    known: Json, preferred: Era, order: list[Era]
) -> None:
    verdicts = Verdicts()
    verdicts.known.update(known)
    assert verdicts.order(preferred) == order


@given(st.sampled_from([None, True, False]), st.sampled_from([None, True, False]))
def test_there_is_always_an_era_to_try(modern: bool | None, legacy: bool | None) -> None:
    verdicts = Verdicts()
    verdicts.known.update(modern=modern, legacy=legacy)
    for preferred in ("modern", "legacy"):
        order = verdicts.order(preferred)
        assert order
        assert len(set(order)) == len(order)


@pytest.mark.parametrize(
    "data, offered",
    [
        ({"supported": [eras.MODERN]}, True),
        ({"supported": ["x"]}, False),
        (None, False),
        ([], False),
    ],
)
def test_a_refusal_may_name_our_version(data: Any, offered: bool) -> None:
    assert eras.offers_modern(messages.error(jsonrpc.UNSUPPORTED_VERSION, "no", data)) is offered
    assert not eras.offers_modern(messages.error(-32601, "no", {"supported": [eras.MODERN]}))
