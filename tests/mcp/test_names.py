"""Names go through as they are, short ones come back, and no two tools ever share one."""

import re
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp.names import DuplicateName, full_name, segments, short_name, table

word = st.text(alphabet="ab_-./é", max_size=5)


def test_a_full_name_is_server_and_tool_and_bare_for_the_nameless_server() -> None:
    assert full_name("files", "read") == "files_read"
    assert full_name("", "read") == "read"


def test_names_go_through_as_they_are() -> None:
    odd = "a.b/" + "c" * 100
    assert table("tool", [("s", odd)], prefixed=False, short=False) == {odd: ("s", odd)}
    assert table("tool", [("s", odd)], prefixed=True, short=False) == {f"s_{odd}": ("s", odd)}


def test_equal_full_names_name_the_tool_and_both_servers() -> None:
    with pytest.raises(DuplicateName) as caught:
        table("tool", [("a", "b_c"), ("a_b", "c")], prefixed=True, short=False)
    assert "'a_b_c'" in str(caught.value)
    assert "'a'" in str(caught.value)
    assert "'a_b'" in str(caught.value)
    assert caught.value.servers == ("a", "a_b")


def test_names_that_become_equal_by_shortening_are_found_too() -> None:
    with pytest.raises(DuplicateName):
        table("tool", [("a", "x.y"), ("b", short_name("x.y"))], prefixed=False, short=True)


def test_a_name_that_every_api_carries_is_not_shortened() -> None:
    assert short_name("a" * 64) == "a" * 64
    assert short_name("read-file_2") == "read-file_2"


@given(st.text(max_size=200))
def test_a_short_name_can_be_carried_and_is_always_the_same(name: str) -> None:
    short = short_name(name)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", short)
    assert short_name(name) == short
    assert short_name(short) == short


@given(st.lists(st.tuples(word, word), max_size=8), st.booleans(), st.booleans())
def test_every_name_in_a_table_leads_back(
    pairs: list[tuple[str, str]], prefixed: bool, short: bool
) -> None:
    shown = {full_name(*pair) if prefixed else pair[1] for pair in pairs}
    shown = {short_name(name) if short else name for name in shown}
    if len(shown) < len(set(pairs)):
        with pytest.raises(DuplicateName) as caught:
            table("tool", pairs, prefixed=prefixed, short=short)
        assert set(caught.value.servers) <= {server for server, _ in pairs}
        return
    found = table("tool", pairs, prefixed=prefixed, short=short)
    assert set(found.values()) == set(pairs)
    assert list(found.values()) == list(dict.fromkeys(pairs))


def test_server_urls_are_percent_encoded_and_the_nameless_one_is_an_underscore() -> None:
    assert segments(["", "a b", "c/d", "é"]) == {
        "": "_",
        "a b": "a%20b",
        "c/d": "c%2Fd",
        "é": "%C3%A9",
    }
    assert segments(["", "_"]) == {"": "__", "_": "_"}
    assert segments(["..", "."]) == {"..": "_..", ".": "_."}


@given(st.lists(st.text(alphabet="_./a é", max_size=4), unique=True, max_size=8))
def test_no_two_servers_share_a_url(names: list[str]) -> None:
    found = segments(names)
    assert len(set(found.values())) == len(names)
    for segment in found.values():
        assert segment not in ("", ".", "..")
        assert quote(unquote(segment), safe="") == segment
