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

from bridge.model.encodings import EncodingError, TooLong, decode, decoder


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


def test_members_of_a_gzip_file_follow_each_other() -> None:
    assert decode(b"gzip", gzip.compress(b"ab") + gzip.compress(b"cd"), 100) == b"abcd"


@pytest.mark.parametrize("name", [b"gzip", b"deflate", b"br", b"zstd"])
def test_what_is_cut_or_broken_is_an_error(name: bytes) -> None:
    encoded = ENCODERS[name](b"hello " * 1000)
    with pytest.raises(EncodingError):
        decode(name, encoded[:-3], 1 << 20)
    with pytest.raises(EncodingError):
        decode(name, b"\xff\xff\xff" + encoded, 1 << 20)


@pytest.mark.parametrize("name", [b"compress", b"gzip, br", b"aes128gcm", b"exi"])
def test_another_encoding_is_named_in_the_error(name: bytes) -> None:
    with pytest.raises(EncodingError, match=name.decode()):
        decode(name, b"x", 100)


@pytest.mark.parametrize("name", [b"gzip", b"deflate", b"br", b"zstd"])
def test_a_bomb_is_stopped_at_the_limit(name: bytes) -> None:
    with pytest.raises(TooLong, match="limit of 1000000"):
        decode(name, ENCODERS[name](bytes(32 << 20)), 1_000_000)
