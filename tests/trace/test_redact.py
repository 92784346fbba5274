"""Secrets are found in every spelling, and nothing else is changed."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.trace.redact import SHORTEST, Redactor

SECRETS = st.text(st.characters(exclude_categories=["Cs"]), min_size=SHORTEST, max_size=40).filter(
    lambda text: len(text.strip()) >= SHORTEST
)
HARD = 'sk-é/"\\\n+ =&🎉x'


def knowing(*values: str) -> Redactor:
    redactor = Redactor()
    for index, value in enumerate(values):
        redactor.learn(f"K{index}", value)
    return redactor


SPELLINGS = {
    "raw": str,
    "json": lambda value: json.dumps(value)[1:-1],
    "json, not ascii": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    "json in json": lambda value: json.dumps(json.dumps(value)[1:-1])[1:-1],
    "json with solidus escaped": lambda value: json.dumps(value)[1:-1].replace("/", "\\/"),
    "path": lambda value: quote(value, safe=""),
    "path, slashes kept": quote,
    "query": quote_plus,
    "base64": lambda value: base64.b64encode(value.encode()).decode().rstrip("="),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_each_spelling_of_a_hard_value_is_masked(spelling: str) -> None:
    text = SPELLINGS[spelling](HARD).encode()
    assert knowing(HARD).mask(b"before " + text + b" after") == b"before [secret K0] after"


@given(SECRETS, st.sampled_from([name for name in SPELLINGS if name != "base64"]))
def test_any_value_is_masked_in_any_spelling(value: str, spelling: str) -> None:
    text = SPELLINGS[spelling](value).encode()
    redactor = knowing(value)
    masked = redactor.mask(b"<" + text + b">")
    assert text not in masked
    assert not redactor.finds(masked) or value.strip() in "[secret K0]"


@given(st.binary(max_size=300))
def test_what_holds_no_secret_is_left_alone(data: bytes) -> None:
    redactor = knowing("never-in-the-data-0123456789")
    assert redactor.mask(data) == data


def test_a_value_inside_another_does_not_leave_the_rest_of_it() -> None:
    redactor = knowing("abcdef", "abcdefghijkl")
    assert redactor.mask(b"abcdefghijkl abcdef") == b"[secret K1] [secret K0]"


def test_a_mask_names_the_secret_in_a_way_that_fits_into_json() -> None:
    redactor = Redactor()
    redactor.learn('odd "name"\n', "value-of-it")
    assert redactor.mask(b'"value-of-it"') == b'"[secret odd_name_]"'


def test_a_key_of_many_lines_is_found_line_by_line() -> None:
    key = "-----BEGIN KEY-----\n" + "A" * 40 + "\n" + "B" * 40 + "\n-----END KEY-----"
    assert b"BBBB" not in knowing(key).mask(b"x " + b"B" * 40)


@pytest.mark.parametrize("value", ["", "1", "true"[:4]])
def test_a_value_that_would_be_found_everywhere_is_not_masked(value: str) -> None:
    assert knowing(value).mask(b"1 true") == b"1 true"


def test_nothing_is_learnt_when_secrets_are_kept() -> None:
    redactor = Redactor(masking=False)
    redactor.learn("K", "some-secret-value")
    assert redactor.mask(b"some-secret-value") == b"some-secret-value"


@given(st.integers(1, 16), st.binary(max_size=20).filter(lambda data: b"C" not in data))
def test_the_end_of_a_piece_that_may_begin_a_secret_is_known(size: int, before: bytes) -> None:
    redactor = knowing("CANARY-123456789")
    assert redactor.unsure(before + b"CANARY-123456789"[: size - 1]) == size - 1
