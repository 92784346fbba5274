"""Mirrored headers: what is written for a server is what is accepted from a caller."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp import mirrored
from bridge.mcp.mirrored import Mirror

REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
NESTED = {
    "type": "object",
    "properties": {
        "where": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        "on": {"type": "boolean", "x-mcp-header": "On"},
    },
}


@pytest.mark.parametrize("value", ["plain", "", "with space", "a=b;c", "=?other?="])
def test_plain_text_travels_as_it_is(value: str) -> None:
    assert mirrored.wrap(value) == value


@pytest.mark.parametrize("value", ["é", " edge", "edge ", "a\nb", "=?base64?eA==?=", "\x7f"])
def test_what_would_not_survive_travels_in_base64(value: str) -> None:
    assert mirrored.wrap(value).startswith("=?base64?")
    assert mirrored.unwrap(mirrored.wrap(value)) == value


@given(st.text())
def test_every_text_comes_back(value: str) -> None:
    wrapped = mirrored.wrap(value)
    assert wrapped.isascii()
    assert wrapped.isprintable() or not wrapped
    assert mirrored.unwrap(wrapped) == value


@pytest.mark.parametrize("value", ["=?base64?%%?=", "=?base64?eB==?=", "=?base64?/w==?="])
def test_broken_base64_is_no_value(value: str) -> None:
    assert mirrored.unwrap(value) is None


def test_annotations_are_found_along_properties() -> None:
    assert mirrored.mirrors(REGION) == [Mirror(("region",), "Mcp-Param-Region", "string")]
    assert {mirror.path for mirror in mirrored.mirrors(NESTED) or []} == {("where", "n"), ("on",)}
    assert mirrored.mirrors({}) == []
    assert mirrored.mirrors(None) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"x-mcp-header": "Root", "type": "string"},
        {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
        {"properties": {"a": {"type": ["string"], "x-mcp-header": "A"}}},
        {"properties": {"a": {"x-mcp-header": "A"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": ""}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": "a b"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": 1}}},
        {"anyOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]},
        {"$defs": {"d": {"type": "string", "x-mcp-header": "A"}}},
        {"items": {"type": "string", "x-mcp-header": "A"}},
        {
            "properties": {
                "a": {"type": "string", "x-mcp-header": "A"},
                "b": {"type": "string", "x-mcp-header": "a"},
            }
        },
    ],
)
def test_one_invalid_annotation_spoils_the_tool(schema: Any) -> None:
    assert mirrored.mirrors(schema) is None


def test_data_that_looks_like_an_annotation_is_data() -> None:
    schema = {
        "properties": {
            "a": {"type": "object", "default": {"x-mcp-header": 1}, "enum": [{"x-mcp-header": 1}]}
        }
    }
    assert mirrored.mirrors(schema) == []


def test_headers_are_written_for_the_arguments_that_are_there() -> None:
    found = mirrored.mirrors(NESTED) or []
    assert sorted(mirrored.param_headers(found, {"where": {"n": 7}, "on": True})) == [
        ("Mcp-Param-N", "7"),
        ("Mcp-Param-On", "true"),
    ]
    assert mirrored.param_headers(found, {"where": 3, "on": None}) == []
    assert mirrored.param_headers(found, None) == []


@pytest.mark.parametrize(
    "arguments, headers, wrong",
    [
        ({"region": "eu"}, {"mcp-param-region": ["eu"]}, None),
        ({}, {}, None),
        ({"region": None}, {}, None),
        ({"region": "eu"}, {}, "missing"),
        ({"region": "eu"}, {"mcp-param-region": ["us"]}, "does not match"),
        ({"region": "eu"}, {"mcp-param-region": ["eu", "eu"]}, "more than once"),
        ({}, {"mcp-param-region": ["eu"]}, "no such value"),
        ({"region": "é"}, {"mcp-param-region": ["=?base64?w6k=?="]}, None),
        ({"region": "é"}, {"mcp-param-region": ["=?base64?w6k?="]}, "does not match"),
    ],
)
def test_a_callers_headers_must_say_what_the_body_says(
    arguments: Any, headers: dict[str, list[str]], wrong: str | None
) -> None:
    found = mirrored.mismatch(mirrored.mirrors(REGION) or [], arguments, headers)
    assert found is None if wrong is None else found is not None and wrong in found


@pytest.mark.parametrize(
    "value, sent, same",
    [(42, "42", True), (42, "42.0", True), (42.0, "42", True), (42, "42.5", False),
     (42, "4.2e1", False), (10**30, str(10**30), True), (1, "true", False)],
)  # fmt: skip
def test_integers_compare_as_numbers(value: Any, sent: str, same: bool) -> None:
    found = mirrored.mirrors({"properties": {"n": {"type": "integer", "x-mcp-header": "N"}}})
    wrong = mirrored.mismatch(found or [], {"n": value}, {"mcp-param-n": [sent]})
    assert (wrong is None) is same


@given(st.text() | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False))
def test_what_we_write_we_accept(value: Any) -> None:
    found = mirrored.mirrors(REGION) or []
    headers = mirrored.param_headers(found, {"region": value})
    sent = {name.lower(): [text] for name, text in headers}
    assert mirrored.mismatch(found, {"region": value}, sent) is None
