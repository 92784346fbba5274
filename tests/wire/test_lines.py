"""Lines out of a stream, however it was cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.lines import LineFramer, LineTooLong

PIECES = st.lists(st.binary(max_size=12) | st.sampled_from([b"\n", b"\r\n", b"a\nb", b"\n\n"]))


def split(pieces: list[bytes], ceiling: int = 1 << 20) -> tuple[list[bytes], bytes]:
    framer = LineFramer(ceiling)
    lines = [line for piece in pieces for line in framer.feed(piece)]
    return lines, framer.end()


@given(PIECES)
def test_any_chunking_gives_the_same_lines(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    *lines, rest = whole.split(b"\n")
    assert split(pieces) == (lines, rest)
    assert split([whole]) == (lines, rest)
    assert split([bytes([byte]) for byte in whole]) == (lines, rest)


def test_only_a_newline_ends_a_line() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\rh"
    assert split([text.encode() + b"\n"]) == ([text.encode()], b"")


def test_the_end_is_given_once() -> None:
    framer = LineFramer(10)
    assert list(framer.feed(b"rest")) == []
    assert framer.end() == b"rest"
    assert framer.end() == b""


@given(st.lists(st.integers(0, 9), min_size=1), st.integers(1, 6))
def test_a_line_over_the_ceiling_is_refused_however_it_was_cut(sizes: list[int], size: int) -> None:
    ceiling = 6
    whole = b"".join(b"x" * length + b"\n" for length in sizes)
    fine = next((i for i, length in enumerate(sizes) if length > ceiling), None)
    framer, got = LineFramer(ceiling), list[bytes]()

    def feed() -> None:
        for start in range(0, len(whole), size):
            got.extend(framer.feed(whole[start : start + size]))

    if fine is None:
        feed()
    else:
        with pytest.raises(LineTooLong, match=str(ceiling)) as caught:
            feed()
        assert caught.value.size > caught.value.ceiling == ceiling
    assert got == [b"x" * length for length in sizes[:fine]]


def test_a_line_of_exactly_the_ceiling_is_fine() -> None:
    assert split([b"x" * 5, b"y" * 5, b"\n"], ceiling=10) == ([b"xxxxxyyyyy"], b"")
