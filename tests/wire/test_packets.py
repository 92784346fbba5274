"""Host framing: told by the first byte, cut anywhere, never out of step."""

import json
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire import codec
from bridge.wire.packets import CEILING, PacketFramer, PacketTooLarge, frame

BODIES = st.lists(st.binary(max_size=40), min_size=1)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


def bodies(pieces: list[bytes], ceiling: int = CEILING) -> list[bytes]:
    framer = PacketFramer(ceiling)
    found = [body for piece in pieces for body in framer.feed(piece)]
    if last := framer.end():
        found.append(last)
    return found


def prefixed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


@given(BODIES, st.lists(st.integers(0, 2000)))
def test_packets_are_the_same_however_they_are_cut(parts: list[bytes], places: list[int]) -> None:
    stream = prefixed(*parts)
    assert bodies([stream]) == parts
    assert bodies(cut(stream, places)) == parts
    assert bodies([bytes([byte]) for byte in stream]) == parts


LINES = st.lists(st.sampled_from([b"{}", b'{"a":1}', b"x", b"", b"  ", b"\t", b"{}\r"]), min_size=1)


@given(LINES, st.lists(st.integers(0, 200)), st.booleans(), st.booleans())
def test_lines_are_the_same_however_they_are_cut(
    lines: list[bytes], places: list[int], ended: bool, bom: bool
) -> None:
    stream = codec.BOM * bom + b"\n".join(lines) + b"\n" * ended
    expected = [line.strip() for line in lines if line.strip()]
    assert bodies([stream]) == expected
    assert bodies(cut(stream, places)) == expected
    assert bodies([bytes([byte]) for byte in stream]) == expected


def test_the_first_byte_decides_for_good() -> None:
    packets, lines = PacketFramer(), PacketFramer()
    assert packets.prefixed is None
    assert list(packets.feed(b"\0")) == []
    assert (packets.prefixed, list(lines.feed(b"{}\n"))) == (True, [b"{}"])
    assert lines.prefixed is False
    assert list(lines.feed(prefixed(b"{}") + b"\n")) == [prefixed(b"{}")]


def test_a_length_counts_bytes_and_the_next_packet_is_in_step() -> None:
    text = '{"text":"é北🎉"}'.encode()
    assert bodies([prefixed(text, b"{}")]) == [text, b"{}"]


def test_a_thousand_random_unicode_frames_come_through_both_framings() -> None:
    random.seed(4)
    values = [
        {"text": "".join(chr(random.choice((65, 233, 0x2028, 0x85, 0x5317, 0x1F389))) * 3)}
        for _ in range(1000)
    ]
    for with_prefix in (True, False):
        stream = b"".join(
            part for value in values for part in frame(codec.encode(value), prefixed=with_prefix)
        )
        pieces = cut(stream, [random.randrange(len(stream)) for _ in range(300)])
        assert [json.loads(body) for body in bodies(pieces)] == values


@pytest.mark.parametrize("size", [CEILING + 1, 200 << 20, 2**56 - 1, 2**63])
def test_a_prefix_over_the_ceiling_is_refused_before_its_body(size: int) -> None:
    framer = PacketFramer()
    stream = framer.feed(prefixed(b"{}") + size.to_bytes(8, "big"))
    assert next(stream) == b"{}"
    with pytest.raises(PacketTooLarge, match=str(size)):
        next(stream)


def test_a_packet_of_exactly_the_ceiling_is_fine() -> None:
    assert bodies([prefixed(b"x" * 10)], ceiling=10) == [b"x" * 10]
    with pytest.raises(PacketTooLarge):
        bodies([prefixed(b"x" * 11)], ceiling=10)


def test_a_line_over_the_ceiling_ends_the_stream_too() -> None:
    assert bodies([b"x" * 10, b"\n"], ceiling=10) == [b"x" * 10]
    with pytest.raises(PacketTooLarge, match="the ceiling is 10"):
        bodies([b"x" * 10, b"x"], ceiling=10)


def test_a_torn_packet_is_dropped_and_a_torn_line_is_not() -> None:
    assert bodies([prefixed(b"{}")[:-1]]) == []
    assert bodies([b"\0\0"]) == []
    assert bodies([b'{"a":1}']) == [b'{"a":1}']


def test_an_empty_packet_is_a_packet() -> None:
    assert bodies([prefixed(b"", b"{}")]) == [b"", b"{}"]


@given(st.binary(max_size=60))
def test_what_is_framed_is_cut_out_again(body: bytes) -> None:
    assert bodies([b"".join(frame(body, prefixed=True))]) == [body]
    head, tail = frame(body, prefixed=False)
    assert (head is body, tail) == (True, b"\n")
