"""An upstream's words for what went wrong: found in every API's shape, short, without secrets."""

import json

import pytest

from bridge.model.faults import LONGEST, credentials, of_answer, shown, words

KEY = "key-CANARY-0123456789"


@pytest.mark.parametrize(
    "body, expected",
    [
        ({"error": {"message": "no such model", "type": "t"}}, "no such model"),
        ({"error": {"type": "overloaded_error"}}, "overloaded_error"),
        ({"error": {}}, "an error without words"),
        ({"error": "nope"}, "nope"),
        ({"type": "error", "message": "m"}, "m"),
        ({"error": None}, None),
        ({"choices": []}, None),
    ],
)
def test_an_error_object_has_words(body: dict[str, object], expected: str | None) -> None:
    assert words(body) == expected


@pytest.mark.parametrize(
    "body, expected",
    [
        (
            json.dumps({"error": {"message": "expected a string, got null"}}),
            "expected a string, got null",
        ),
        (json.dumps([{"error": {"message": "quota"}}]), "quota"),
        (json.dumps({"detail": "Not Found"}), "Not Found"),
        (json.dumps({"message": "m"}), "m"),
        (json.dumps({"detail": [{"loc": ["body"]}]}), "[{'loc': ['body']}]"),
        (
            "<html><head><title>x</title></head><body><h1>502 Bad Gateway</h1></body>",
            "502 Bad Gateway",
        ),
        ("plain words", "plain words"),
        ('event: error\ndata: {"type":"error","error":{"message":"Overloaded"}}\n\n', "Overloaded"),
        (': ping\r\n\r\ndata: {"error":{"message":"quota"}}', "quota"),
        ("data: [DONE]\n\n", "data: [DONE]"),
        ("", "status 418"),
        ("{}", "{}"),
        ("[]", "[]"),
    ],
)
def test_any_failed_answer_has_words(body: str, expected: str) -> None:
    assert of_answer(418, body.encode()) == expected


def test_bytes_that_are_no_text_are_words_too() -> None:
    assert "\ufffd" in of_answer(500, b"\xff\xfe oops")


def test_words_are_one_short_line() -> None:
    assert shown("a\n  b\tc", [], b"") == "a b c"
    long = shown("x" * 5000, [], b"")
    assert len(long) == LONGEST
    assert long.endswith("…")


@pytest.mark.parametrize(
    "name, value",
    [
        (b"Authorization", f"Bearer {KEY}"),
        (b"x-api-key", KEY),
        (b"Cookie", KEY),
        (b"X-Goog-Api-Key", KEY),
    ],
)
def test_what_the_request_was_authorized_with_is_masked(name: bytes, value: str) -> None:
    told = shown(f"Incorrect API key provided: {KEY}.", [(name, value.encode())], b"/v1")
    assert told == "Incorrect API key provided: ***."


def test_a_key_in_the_query_is_masked() -> None:
    assert shown(f"bad {KEY}", [], f"/v1?key={KEY}&a=b".encode()) == "bad ***"


@pytest.mark.parametrize("text", ["sk-abcdefghijkl", "AIzaSyA1234567890", "Bearer abc.def-ghi"])
def test_what_looks_like_a_key_is_masked_though_nobody_gave_it(text: str) -> None:
    assert shown(f"got {text}", [], b"") == "got ***"


def test_short_values_and_harmless_headers_are_not_masked() -> None:
    headers = [(b"x-api-key", b"ab"), (b"Idempotency-Key", b"words"), (b"Accept", b"words")]
    assert shown("these are words about", headers, b"/?q=words") == "these are words about"
    assert list(credentials(headers, b"/?token=t")) == ["ab", "t"]


def test_credentials_are_those_of_the_fields_and_of_the_query() -> None:
    headers = [(b"Authorization", b"Bearer k-1"), (b"Cookie", b"a=k-2"), (b"Accept", b"a")]
    found = set(credentials(headers, b"/x?key=k%2D3&page=2"))
    assert found == {"Bearer k-1", "k-1", "a=k-2", "k-2", "k%2D3", "k-3"}
