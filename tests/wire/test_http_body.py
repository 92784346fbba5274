"""Bodies: every chunking gives the same bytes; the end is found to the byte, where h11 finds it."""

import itertools

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire import http_body
from bridge.wire.http_body import BadBody, Body, body, last_chunk


def chunk(data: bytes) -> bytes:
    """One chunk; of no data none, since an empty one would end the body."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def feed(decoder: Body, data: bytes, cuts: list[int]) -> tuple[bytes, bytes, bytes]:
    """Raw, data and rest of the whole, fed in pieces; what follows the end is fed as well."""
    raw = found = rest = b""
    edges = [0, *sorted(cuts), len(data)]
    for start, end in itertools.pairwise(edges):
        piece = decoder.feed(data[start:end])
        raw += piece.raw
        found += piece.data
        rest += piece.rest
    return raw, found, rest


PIECES = st.lists(
    st.one_of(st.binary(max_size=40), st.sampled_from([b"\r\n", b"\r\n\r\n", b"0\r\n\r\n", b"\n"])),
    max_size=8,
)
TRAILERS = st.sampled_from([[], [(b"X-Sum", b"1")], [(b"A", b"b"), (b"A", b"")]])


@given(PIECES, TRAILERS, st.sampled_from([b"", b"\r\n", b"GET / HTTP/1.1\r\n\r\n"]), st.data())
def test_a_chunked_body_is_found_to_the_byte(pieces, trailers, after, data) -> None:
    framed = b"".join(map(chunk, pieces)) + last_chunk(trailers)
    stream = framed + after
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6))
    for each in (cuts, list(range(len(stream)))):
        decoder = body("chunked")
        assert feed(decoder, stream, each) == (framed, b"".join(pieces), after)
        assert decoder.done
        assert decoder.trailers == trailers


FRAMES = st.lists(
    st.sampled_from(
        [
            *(
                b"3\r\nabc\r\n",
                b"3;x=y\r\nabc\r\n",
                b"3\nabc\n",
                b"03\r\nabc\r\n",
                b"A\r\n0123456789\r\n",
            ),
            *(
                b"3\r\nabcd\r\n",
                b"x\r\n",
                b"-1\r\n",
                b"0\r\n",
                b"\r\n",
                b"T: v\r\n",
                b" 3\r\nabc\r\n",
            ),
            *(b"ffffffffffffffffff\r\n", b"3 \r\nabc\r\n", b"0x3\r\nabc\r\n", b"3\r\nabc"),
        ]
    ),
    max_size=6,
)


@given(FRAMES)
def test_no_chunked_framing_is_accepted_that_h11_reads_otherwise(frames: list[bytes]) -> None:
    stream = b"".join(frames)
    decoder = body("chunked")
    try:
        piece = decoder.feed(stream)
    except BadBody:
        return
    if not decoder.done:
        return
    oracle = h11.Connection(h11.SERVER)
    oracle.receive_data(
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + stream
    )
    assert isinstance(oracle.next_event(), h11.Request)
    found = b""
    while isinstance(event := oracle.next_event(), h11.Data):
        found += event.data
    assert isinstance(event, h11.EndOfMessage)
    assert found == piece.data
    assert oracle.trailing_data[0] == piece.rest


@given(st.binary(max_size=30), st.binary(max_size=10), st.data())
def test_a_length_is_counted_to_the_byte(content: bytes, after: bytes, data) -> None:
    stream = content + after
    decoder = body("length", len(content))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=5))
    assert feed(decoder, stream, cuts) == (content, content, after)
    assert decoder.done


def test_a_body_to_the_end_of_the_stream_is_done_there_alone() -> None:
    decoder = body("close")
    assert decoder.feed(b"abc") == http_body.Piece(b"abc", b"abc", b"")
    assert not decoder.done
    decoder.eof()
    assert decoder.done


@pytest.mark.parametrize("framing, start", [("length", b"abc"), ("chunked", b"3\r\nabc\r\n")])
def test_a_body_cut_off_is_no_body(framing, start: bytes) -> None:
    decoder = body(framing, 5)
    decoder.feed(start)
    with pytest.raises(BadBody, match="cut off"):
        decoder.eof()


@pytest.mark.parametrize(
    "framed", [b"x\r\n", b"3\nabc\n", b"3\r\nabcd\r\n", b"g" * 9, b"3\r\nabc\r\n0\r\nX: \0\r\n\r\n"]
)
def test_broken_chunked_framing_is_an_error(framed: bytes) -> None:
    with pytest.raises(BadBody, match="chunked framing"):
        body("chunked").feed(framed)


def test_the_number_of_trailers_is_bounded() -> None:
    with pytest.raises(BadBody):
        body("chunked").feed(b"0\r\n" + b"X: y\r\n" * 2000 + b"\r\n")
