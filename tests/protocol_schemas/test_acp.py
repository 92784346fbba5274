"""What the daemon reads of ACP messages, as agents really send them."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridge.wire import codec
from protocol_schemas.acp import (
    AgentCapabilities,
    InitializeResult,
    PermissionParams,
    PromptResult,
    TextBlock,
    UpdateParams,
)


@pytest.mark.parametrize(
    ("sent", "name", "able"),
    [
        ({"sessionCapabilities": {"close": {}}}, "close", True),
        ({"sessionCapabilities": {"close": None}}, "close", False),
        ({"sessionCapabilities": {"list": {}}}, "close", False),
        ({"sessionCapabilities": None}, "close", False),
        ({}, "fork", False),
    ],
)
def test_a_capability_is_there_if_its_value_is(sent: Any, name: str, able: bool) -> None:
    assert codec.convert(sent, AgentCapabilities).session(name) is able


def test_an_initialize_result_may_be_next_to_empty() -> None:
    result = codec.convert({"protocolVersion": 1, "agentCapabilities": None}, InitializeResult)
    assert (result.protocol_version, result.agent_capabilities, result.auth_methods) == (
        1,
        None,
        None,
    )
    with pytest.raises(codec.JSONError, match="protocolVersion"):
        codec.convert({}, InitializeResult)


def test_an_unknown_stop_reason_is_kept() -> None:
    sent = {"stopReason": "tired", "usage": {"totalTokens": 3}, "_meta": {"a": 1}}
    result = codec.convert(sent, PromptResult)
    assert (result.stop_reason, result.usage, result.meta) == (
        "tired",
        {"totalTokens": 3},
        {"a": 1},
    )
    assert codec.convert({}, PromptResult).stop_reason is None


@pytest.mark.parametrize(
    "content",
    [
        {"type": "text", "text": "x"},
        {"type": "image", "data": "eA==", "mimeType": "image/png"},
        [{"type": "content", "content": {"type": "text", "text": "x"}}],
        "a string",
        3,
        None,
    ],
)
def test_an_update_s_content_may_be_anything(content: Any) -> None:
    sent = {"sessionId": "s", "update": {"sessionUpdate": "x", "content": content}}
    update = msgspec.json.decode(codec.encode(sent), type=UpdateParams).update
    assert update.kind == "x"
    if isinstance(content, dict):
        assert isinstance(update.content, TextBlock)


def test_an_option_id_is_what_the_agent_sent() -> None:
    sent = {"sessionId": "s", "toolCall": {}, "options": [{"optionId": 42, "kind": "allow_once"}]}
    assert codec.convert(sent, PermissionParams).options[0].option_id == 42


RECORDED = sorted(Path(__file__).parents[1].glob("trace/check/transcripts/*.acp.ndjson"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_every_recorded_update_is_read(path: Path) -> None:
    seen = 0
    for line in path.read_text().splitlines():
        message = json.loads(line).get("msg", {})  # marks between scenarios have none
        if message.get("method") == "session/update":
            update = msgspec.json.decode(codec.encode(message["params"]), type=UpdateParams).update
            assert update.kind == message["params"]["update"]["sessionUpdate"]
            seen += 1
    assert seen
