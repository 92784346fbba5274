"""What a route's options do to a body: rules switched, caps lowered, encodings read or not."""

import gzip
import json
from typing import Any

import pytest

from bridge.model.body import Mender, Unreadable
from bridge.model.dialects import Kind
from protocol_schemas.model import ModelLimits, ModelOptions


def mended(body: Any, dialect: Any = "chat", **options: Any) -> bytes | None:
    data = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
    spliced = Mender(ModelOptions(**options)).mend(data, dialect, tell=True).spliced
    return None if spliced is None else b"".join(spliced.parts)


def test_each_rule_is_switched_by_its_option() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [], "refusal": None}
    body = {"messages": [message]}
    frame = b'{"messages":[{"role":"assistant",%b}]}'
    assert mended(body) == frame % b'"content":"","tool_calls":[],"refusal":null'
    assert mended(body, mend_content=False) is None
    found = mended(body, mend_content=False, drop_empty_tool_calls=True)
    assert found == frame % b'"content":null,"refusal":null'
    assert mended(body, drop_nulls=True) == frame % b'"content":"","tool_calls":[]'
    every = mended(body, drop_nulls=True, drop_empty_tool_calls=True)
    assert every == frame % b'"content":""'


CAP = ModelLimits(max_turn_tokens=100)


@pytest.mark.parametrize(
    "dialect, before, after",
    [
        ("chat", {"messages": []}, {"messages": [], "max_tokens": 100}),
        ("chat", {"max_tokens": 500, "messages": []}, {"max_tokens": 100, "messages": []}),
        ("chat", {"max_tokens": 50}, None),
        ("chat", {"max_completion_tokens": 500}, {"max_completion_tokens": 100}),
        ("chat", {"max_completion_tokens": 5}, None),
        ("chat", {"max_tokens": None}, {"max_tokens": 100}),
        ("completions", {"prompt": "x"}, {"prompt": "x", "max_tokens": 100}),
        ("anthropic", {"max_tokens": 4096}, {"max_tokens": 100}),
        ("responses", {"input": []}, {"input": [], "max_output_tokens": 100}),
        ("responses", {"max_output_tokens": 7}, None),
        ("gemini", {}, {"generationConfig": {"maxOutputTokens": 100}}),
        (
            "gemini",
            {"generationConfig": {"temperature": 1}},
            {"generationConfig": {"temperature": 1, "maxOutputTokens": 100}},
        ),
        (
            "gemini",
            {"generationConfig": {"maxOutputTokens": 200}},
            {"generationConfig": {"maxOutputTokens": 100}},
        ),
        ("gemini", {"generationConfig": {"maxOutputTokens": 20}}, None),
        ("gemini", {"generationConfig": 7}, None),
        (
            "gemini",
            {"generationConfig": None},
            {"generationConfig": {"maxOutputTokens": 100}},
        ),
        (
            "gemini",
            {"generation_config": {"max_output_tokens": 200}},
            {"generation_config": {"max_output_tokens": 100}},
        ),
    ],
)
def test_a_cap_is_put_where_the_dialect_has_it(dialect, before, after) -> None:
    found = mended(before, dialect, limits=CAP)
    assert (None if found is None else json.loads(found)) == after


def test_a_cap_and_a_mended_content_go_together() -> None:
    found = mended({"messages": [{"role": "assistant"}]}, limits=CAP)
    assert found == b'{"messages":[{"role":"assistant","content":""}],"max_tokens":100}'


DEEP = b"[" * 3000 + b"]" * 3000


@pytest.mark.parametrize("other", [b'"\\ud83d"', DEEP], ids=["lone surrogate", "deep nesting"])
@pytest.mark.parametrize(
    "dialect, before, after",
    [
        ("anthropic", b'{"max_tokens":200,"x":%b}', b'{"max_tokens":100,"x":%b}'),
        ("anthropic", b'{"x":%b,"max_tokens":10}', None),
        ("responses", b'{"max_output_tokens":10,"x":%b}', None),
        ("completions", b'{"x": %b}', b'{"x": %b,"max_tokens":100}'),
        ("chat", b'{"max_tokens":10,"x":%b}', None),
        ("gemini", b'{"generationConfig":{"maxOutputTokens":10},"x":%b}', None),
        (
            "gemini",
            b'{"generationConfig":{"x":%b, "maxOutputTokens":200,"y":1}}',
            b'{"generationConfig":{"x":%b, "maxOutputTokens":100,"y":1}}',
        ),
    ],
)
def test_a_cap_is_found_beside_what_the_fast_parser_refuses(
    dialect: str, before: bytes, after: bytes | None, other: bytes
) -> None:
    expected = None if after is None else after % other
    assert mended(before % other, dialect, limits=CAP) == expected


@pytest.mark.parametrize(
    "body", [b"", b"[1]", b"{", b'"x"', b"\xff", b'{"x":1} x', b'{"max_tokens":"\xff"}', b"{}{}"]
)
@pytest.mark.parametrize("dialect", ["chat", "anthropic", "gemini"])
def test_what_is_no_object_stays(dialect: str, body: bytes) -> None:
    assert mended(body, dialect, limits=CAP) is None
    assert mended(body, dialect) is None


def test_only_what_must_be_read_is_read() -> None:
    plain, capped = Mender(ModelOptions()), Mender(ModelOptions(limits=CAP))
    assert plain.reads(Kind("chat", "turn"))
    assert not plain.reads(Kind("anthropic", "turn"))
    assert capped.reads(Kind("anthropic", "turn"))
    assert not capped.reads(Kind("anthropic", "count"))
    assert not capped.reads(Kind("other", "models"))


@pytest.mark.anyio
async def test_an_encoding_is_read_or_not_and_must_be_for_a_cap() -> None:
    plain, capped = Mender(ModelOptions()), Mender(ModelOptions(limits=CAP))
    body = b"x" * 100
    assert await plain.decoded(body, b" Identity") is body
    assert await plain.decoded(gzip.compress(body), b"gzip") == body
    large = bytes(range(256)) * 2000
    assert await plain.decoded(gzip.compress(large, 0), b"gzip") == large
    assert await plain.decoded(body, b"gzip") is None
    assert await plain.decoded(body, b"lzma") is None
    with pytest.raises(Unreadable, match=r"max_turn_tokens needs the body read, but .*'lzma'"):
        await capped.decoded(body, b"lzma")


def test_a_request_s_facts_come_from_its_first_message_and_its_fields() -> None:
    body = {"model": "m", "messages": [{"role": "system", "content": "make a title"}, {}]}
    facts = Mender(ModelOptions()).mend(json.dumps(body).encode(), "chat", tell=True).facts
    assert (facts.model, facts.side) == ("m", "title")
