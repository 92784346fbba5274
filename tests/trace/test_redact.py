"""Secrets are found in every spelling, and nothing else is changed."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.trace.redact import SHORTEST, Redactor, spellings

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
    # A byte that is in no text, so that nothing can begin or end outside.
    assert knowing(value).mask(b"\xff" + text + b"\xff") == b"\xff[secret K0]\xff"


@given(st.binary(max_size=300))
def test_what_holds_no_secret_is_left_alone(data: bytes) -> None:
    value = "never-in-the-data-0123456789"
    if not any(spelling in data for spelling in spellings(value)):
        assert knowing(value).mask(data) == data


@given(SECRETS, st.binary(max_size=5), st.binary(max_size=5), st.booleans())
def test_what_a_value_alone_decides_of_a_longer_base64_text_is_a_spelling(
    value: str, before: bytes, after: bytes, url: bool
) -> None:
    raw = value.encode()
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    text = encode(before + raw + after)
    core = text[-(-len(before) * 8 // 6) : (len(before) + len(raw)) * 8 // 6]
    assert len(raw) < 8 or core in spellings(value)


@pytest.mark.parametrize("user", ["u", "us", "use", "user"])
def test_basic_credentials_show_no_key_that_is_known(user: str) -> None:
    header = b"Basic " + base64.b64encode(f"{user}:CANARY-12345678".encode())
    shown = knowing("CANARY-12345678").mask(header)
    assert shown.count(b"[secret K0]") == 1
    before, after = shown.split(b"[secret K0]")
    # A character at each end holds bits of a neighbour, too.
    assert len(before.removeprefix(b"Basic ")) == -(-(len(user) + 1) * 8 // 6)
    assert len(after.rstrip(b"=")) <= 1


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


# What comes in pieces: each may end within a secret, and one secret within another.

WORDS = ("CANARY-123456789", "9-lives-of-CANARY", "aXaXaXa", "aXaXaXaXYZ")
BEGINNINGS = sorted(
    spelling[:size]
    for word in WORDS
    for spelling in spellings(word)
    for size in range(1, len(spelling) + 1)
)
DATA = st.lists(st.sampled_from(BEGINNINGS) | st.binary(max_size=3), max_size=8).map(b"".join)


@given(DATA)
def test_what_may_begin_a_secret_waits_and_no_secret_is_cut(data: bytes) -> None:
    redactor = knowing(*WORDS)
    known = {spelling for word in WORDS for spelling in spellings(word)}
    kept = redactor.unsure(data)
    begun = (data[-size:] for size in range(1, len(data) + 1))
    longest = max(
        (len(end) for end in begun if any(s.startswith(end) and s != end for s in known)), default=0
    )
    assert kept >= longest
    if not redactor.finds(data):
        assert kept == longest


@given(DATA, st.lists(st.integers(0, 40), max_size=6))
def test_masked_piece_by_piece_it_is_the_same_as_masked_whole(
    data: bytes, sizes: list[int]
) -> None:
    redactor, held, shown, at = knowing(*WORDS), b"", b"", 0
    for size in sizes:
        held += data[at : at + size]
        at += size
        sure = len(held) - redactor.unsure(held)
        shown += redactor.mask(held[:sure])
        held = held[sure:]
    assert shown + redactor.mask(held + data[at:]) == redactor.mask(data)


def test_a_secret_that_ends_as_it_begins_is_not_cut_at_the_end_of_a_piece() -> None:
    redactor = knowing("token-of-t")
    assert redactor.unsure(b"x token-of-t") == len("token-of-t")
