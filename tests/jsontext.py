"""JSON texts as nobody writes them: hypothesis strategies for values and for how they are spelt."""

import json
from typing import Any

from hypothesis import strategies as st

SPACES = st.sampled_from(["", "", "", " ", "\n", "\t \r\n"])
CHARACTERS = st.one_of(
    st.sampled_from(list('aé😀\u2028"\\/\n\0')), st.characters(blacklist_categories=["Cs"])
)
TEXTS = st.text(CHARACTERS, max_size=8)
NUMBERS = st.sampled_from(
    ["0", "-0", "1", "1.0", "1e5", "-1.5E-3", "100000000000000000001", "1E400"]
)
KEYS = st.one_of(
    st.sampled_from(["role", "content", "tool_calls", "messages", "function_call", "x"]), TEXTS
)


class Number(str):
    """A number by its spelling."""

    __slots__ = ()


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS.map(Number), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(st.tuples(KEYS, inner), max_size=4).map(tuple)
    ),
    max_leaves=12,
)
"""JSON values; an object is a tuple of pairs, keys given twice included."""


@st.composite
def spelt(draw: Any, value: Any) -> str:
    """One of the texts that mean this value."""

    def string(text: str) -> str:
        way = draw(st.integers(0, 3))
        if way == 0 and text and text.isascii():
            return '"' + "".join(f"\\u{ord(c):04x}" for c in text) + '"'
        if way == 1 and text:
            position = draw(st.integers(0, len(text) - 1))
            if ord(text[position]) < 0x10000:
                middle = f"\\u{ord(text[position]):04X}"
                head = json.dumps(text[:position])[:-1]
                return head + middle + json.dumps(text[position + 1 :])[1:]
        return json.dumps(text, ensure_ascii=way == 2)

    def space() -> str:
        return draw(SPACES)

    def write(value: Any) -> str:
        if isinstance(value, Number):
            return str(value)
        if isinstance(value, str):
            return string(value)
        if isinstance(value, list):
            return "[" + space() + ",".join(space() + write(v) + space() for v in value) + "]"
        if isinstance(value, tuple):
            pairs = (space() + string(k) + space() + ":" + space() + write(v) for k, v in value)
            return "{" + space() + ",".join(pair + space() for pair in pairs) + "}"
        return json.dumps(value)

    return space() + write(value) + space()


def read(text: bytes) -> Any:
    """A text as such a value, with the numbers as spelt and all keys."""
    return json.loads(
        text, object_pairs_hook=tuple, parse_int=Number, parse_float=Number, parse_constant=Number
    )


def last(pairs: tuple[tuple[str, Any], ...], key: str) -> Any:
    """The value of a key that counts; Ellipsis if there is none."""
    return dict(pairs).get(key, ...)
