"""bridge.wire.toml_text: what it writes is read back by the standard library's reader."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire import toml_text

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
plain = text | st.booleans() | st.integers(-(2**63), 2**63 - 1)
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(text, values, max_size=5))
def test_a_table_comes_back_as_it_was(table: dict[str, Any]):
    assert tomllib.loads(toml_text.dumps(table)) == table


@pytest.mark.parametrize(
    "table, written",
    [
        ({}, ""),
        ({"a": "b"}, 'a = "b"\n'),
        ({"a b": 1.5}, '"a b" = 1.5\n'),
        ({"a": {"b": [True, {}]}}, "a = {b = [true, {}]}\n"),
        ({"a": 'say "\x7f"\n'}, 'a = "say \\"\\u007f\\"\\n"\n'),
    ],
)
def test_each_key_has_a_line(table: dict[str, Any], written: str):
    assert toml_text.dumps(table) == written
