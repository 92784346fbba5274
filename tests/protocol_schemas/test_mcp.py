"""MCP servers as they are configured: known keys, values named, schema and decoder alike."""

import json
from typing import Any

import jsonschema
import pytest

from bridge.wire import codec
from protocol_schemas import export
from protocol_schemas.mcp import AcpEntry, FileEntry, Hints, Policy, known_keys

KINDS = {"FileEntry": FileEntry, "AcpEntry": AcpEntry, "Policy": Policy}


def allowed_by_schema(name: str, value: Any) -> bool:
    document = json.loads((export.FOLDER / "mcp.json").read_text())
    return jsonschema.Draft202012Validator(document | {"$ref": f"#/$defs/{name}"}).is_valid(value)


def test_what_is_not_said_has_the_documented_value() -> None:
    policy = codec.convert({}, Policy)
    assert (policy.delivery, policy.attempts, policy.timeout) == ("at-least-once", 6, 600)
    assert (policy.total_timeout, policy.connect_timeout) == (None, 5)
    assert (policy.backoff.initial, policy.backoff.max) == (0.5, 30)
    assert (policy.max_result_bytes, policy.proxy, policy.keep_alive) == (256 << 20, True, False)


def test_an_entry_of_a_file_takes_the_policys_keys_as_well() -> None:
    assert known_keys(Policy) < known_keys(FileEntry)
    assert known_keys(FileEntry) - known_keys(Policy) == {
        *("type", "url", "headers", "command", "args", "env", "cwd", "disabled")
    }


def test_keys_are_known_as_they_are_written() -> None:
    assert known_keys(Hints) == {"readOnlyHint", "destructiveHint", "idempotentHint"}


@pytest.mark.parametrize(
    ("name", "value", "valid"),
    [
        ("FileEntry", {"url": "http://127.0.0.1/", "headers": {"A": "b"}, "later": 1}, True),
        ("FileEntry", {"command": "x", "args": ["y"], "env": {"A": "b"}, "cwd": "/"}, True),
        ("FileEntry", {"type": "streamableHttp", "url": "u", "tools": {"t": {"timeout": 1}}}, True),
        ("FileEntry", {"command": ["x"]}, False),
        ("FileEntry", {"type": "pigeon"}, False),
        ("FileEntry", {"headers": {"A": 1}}, False),
        ("AcpEntry", {"name": "x", "command": "y", "env": [{"name": "A", "value": "b"}]}, True),
        ("AcpEntry", {"name": "x", "type": "http", "url": "u", "headers": []}, True),
        ("AcpEntry", {"type": "http", "url": "u"}, False),
        ("AcpEntry", {"name": "x", "env": {"A": "b"}}, False),
        ("Policy", {"delivery": "never", "backoff": {"initial": 0, "max": 0}}, True),
        ("Policy", {"delivery": "twice"}, False),
        ("Policy", {"attempts": 0}, False),
        ("Policy", {"timeout": 0}, False),
        ("Policy", {"backoff": {"initial": -1}}, False),
        ("Policy", {"max_parallel": 1.5}, False),
        ("Policy", {"tools": {"t": {"delivery": "maybe"}}}, False),
    ],
)
def test_schema_and_decoder_agree(name: str, value: Any, valid: bool) -> None:
    assert allowed_by_schema(name, value) is valid
    if valid:
        codec.convert(value, KINDS[name])
    else:
        with pytest.raises(codec.JSONError):
            codec.convert(value, KINDS[name])


def test_a_wrong_value_is_named_by_its_place() -> None:
    with pytest.raises(codec.JSONError, match=r"\$\.tools\[\.\.\.\]\.timeout"):
        codec.convert({"tools": {"t": {"timeout": 0}}}, Policy)
