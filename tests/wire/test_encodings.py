"""Content encodings: decoded in any pieces, bounded, and never trusted."""

import gzip
import itertools
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.encodings import EncodingError, TooLong, decode, decoder


def raw_deflate(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(data) + made.flush()


ENCODERS: dict[bytes, Callable[[bytes], bytes]] = {
    b"gzip": gzip.compress,
    b"X-GZIP": gzip.compress,
    b"deflate": zlib.compress,
    b" deflate ": raw_deflate,
    b"br": brotli.compress,
    b"zstd": zstandard.compress,
}


@pytest.mark.parametrize("name", ENCODERS)
@given(st.binary(max_size=200), st.data())
def test_what_is_encoded_is_decoded_in_any_pieces(name: bytes, content: bytes, data) -> None:
    encoded = ENCODERS[name](content)
    assert decode(name, encoded, 1 << 20) == content
    stream = decoder(name)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(encoded)), max_size=4)))
    edges = [0, *cuts, len(encoded)]
    found = b"".join(stream.feed(encoded[start:end]) for start, end in itertools.pairwise(edges))
    assert found == content
    assert stream.whole


@pytest.mark.parametrize("name", [b"gzip", b"zstd"])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_frames_that_follow_each_other_are_one_body(name: bytes, size: int) -> None:
    encoded = b"".join(map(ENCODERS[name], (b"ab", b"", b"cd")))
    assert decode(name, encoded, 100) == b"abcd"
    stream = decoder(name)
    pieces = (encoded[start : start + size] for start in range(0, len(encoded), size))
    assert b"".join(map(stream.feed, pieces)) == b"abcd"


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("junk", [b"\0", b"junk" * 10_000])
def test_what_stands_behind_the_end_is_an_error(name: str, junk: bytes) -> None:
    with pytest.raises(EncodingError):
        decode(name.encode(), ENCODERS[name.encode()](b"hello") + junk, 1 << 20)


@pytest.mark.parametrize(
    "names, encode",
    [
        (b"gzip, identity", gzip.compress),
        (b"identity,deflate ,", zlib.compress),
        (b"deflate, GZIP", lambda data: gzip.compress(zlib.compress(data))),
        (b"gzip, gzip", lambda data: gzip.compress(gzip.compress(data))),
        (b"identity", bytes),
    ],
)
def test_a_list_of_encodings_is_undone_from_the_last_on(names: bytes, encode) -> None:
    assert decode(names, encode(b"hello"), 100) == b"hello"


@pytest.mark.parametrize("name", [b"gzip", b"deflate", b"br", b"zstd"])
def test_what_is_cut_or_broken_is_an_error(name: bytes) -> None:
    encoded = ENCODERS[name](b"hello " * 1000)
    with pytest.raises(EncodingError):
        decode(name, encoded[:-3], 1 << 20)
    with pytest.raises(EncodingError):
        decode(name, b"\xff\xff\xff" + encoded, 1 << 20)


@pytest.mark.parametrize("name", [b"compress", b"aes128gcm", b"exi"])
def test_another_encoding_is_named_in_the_error(name: bytes) -> None:
    with pytest.raises(EncodingError, match=name.decode()):
        decode(name, b"x", 100)


@pytest.mark.parametrize("name", [b"gzip", b"deflate", b"br", b"zstd"])
def test_a_bomb_is_stopped_at_the_limit(name: bytes) -> None:
    with pytest.raises(TooLong, match="limit of 1000000"):
        decode(name, ENCODERS[name](bytes(32 << 20)), 1_000_000)
