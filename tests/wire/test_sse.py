"""The parser against the standard, against a plain model of it, and against any chunking."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.sse import Event, Parser, SSEError, encode


def parse(data: bytes, *cuts: int) -> list[Event]:
    parser = Parser()
    edges = [0, *sorted(cuts), len(data)]
    events: list[Event] = []
    for start, end in itertools.pairwise(edges):
        events += parser.feed(data[start:end])
    return events


def plain(data: bytes) -> list[Event]:
    """The standard's algorithm on the whole text, line by line."""
    text = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events, name, buffer, last_id, retry = [], b"", b"", "", None
    for line in text.split(b"\n")[:-1]:
        if not line:
            if buffer:
                shown = name.decode(errors="replace") or "message"
                events.append(Event(shown, buffer[:-1], last_id, retry))
            name, buffer, retry = b"", b"", None
            continue
        field, colon, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if colon and not field:
            continue
        if field == b"data":
            buffer += value + b"\n"
        elif field == b"event":
            name = value
        elif field == b"id" and b"\0" not in value:
            last_id = value.decode(errors="replace")
        elif field == b"retry" and value and all(byte in b"0123456789" for byte in value):
            retry = int(value[:18])
    return events


LINES = st.one_of(
    st.sampled_from(
        [
            *(
                b"",
                b"",
                b":",
                b": ping",
                b"data",
                b"data:",
                b"data: x",
                b"data:  y",
                b"event: ping",
            ),
            *(b"id: 7", b"id: a\0b", b"id", b"retry: 30", b"retry: x", b"retry:", b"\xef"),
            *(b"data: : keepalive", b"nonsense", b"data : z", b"DATA: z", b"data:\xff\xfe"),
            "data: \u2028é".encode(),
        ]
    ),
    st.binary(max_size=12),
)
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])
STREAMS = st.lists(st.tuples(LINES, ENDS), max_size=30).map(
    lambda pairs: b"".join(line + end for line, end in pairs)
)


@given(st.sampled_from([b"", b"\xef\xbb\xbf"]), STREAMS, st.binary(max_size=5), st.data())
def test_any_chunking_gives_the_events_of_the_standard(bom, stream, tail, data) -> None:
    stream = bom + stream + tail
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))
    assert parse(stream, *cuts) == plain(stream)
    assert parse(stream, *range(len(stream))) == plain(stream)


@pytest.mark.parametrize(
    "stream, data",
    [
        (b"data: a\n\n", [b"a"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\ndata:\ndata: b\n\n", [b"a\n\nb"]),
        (b"data\n\n", [b""]),
        (b": ping\n\n: PROCESSING\n\nevent: ping\n\n", []),
        (b"data: : keepalive\n\n", [b": keepalive"]),
        (b"data: cut off", []),
        (b"data: cut off\n", []),
    ],
)
def test_events_of_a_stream(stream: bytes, data: list[bytes]) -> None:
    assert [event.data for event in parse(stream)] == data


def test_name_and_retry_last_one_event_and_the_id_stays() -> None:
    events = parse(b"event: a\nid: 1\nretry: 20\ndata: x\n\ndata: y\n\nid\ndata: z\n\n")
    assert events == [
        Event("a", b"x", "1", 20),
        Event("message", b"y", "1"),
        Event("message", b"z", ""),
    ]


def test_a_character_cut_in_two_is_whole_and_bad_bytes_are_replaced() -> None:
    stream = "data: é😀\n\n".encode() + b"data: \xff\n\n"
    first, second = parse(stream, *range(len(stream)))
    assert (first.text, second.text, second.data) == ("é😀", "\ufffd", b"\xff")


@pytest.mark.parametrize("piece", [b"x" * 60, b"data: " + b"x" * 60 + b"\n"])
def test_an_event_is_bounded_whether_in_one_line_or_in_many(piece: bytes) -> None:
    parser = Parser(limit=100)
    parser.feed(b"data: short\n\n" * 50)
    parser.feed(piece)
    with pytest.raises(SSEError, match="100 bytes"):
        parser.feed(piece)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_an_event_within_the_limit_is_one_however_it_is_cut(size: int) -> None:
    data = (b": a comment of some length\n" * 5 + b"data: " + b"x" * 90 + b"\n\n") * 3
    parser = Parser(limit=100)
    events = [e for i in range(0, len(data), size) for e in parser.feed(data[i : i + size])]
    assert [event.data for event in events] == [b"x" * 90] * 3


@pytest.mark.parametrize(
    "data, rest",
    [
        (b"", b""),
        (b"data: x\n\n", b""),
        (b"data: x\n\ndata: a\ndata: b", b"a\nb"),
        (b"data:a\n", b"a"),
        (b"event: e\nid: 1\ndata: a\n: not data", b"a"),
        (b"data", b""),
    ],
)
def test_what_a_stream_ends_in_the_middle_of_can_be_asked_for(data: bytes, rest: bytes) -> None:
    parser = Parser()
    parser.feed(data)
    assert parser.rest == rest


@given(st.text())
def test_what_is_encoded_parses_back(text: str) -> None:
    expected = text.replace("\r\n", "\n").replace("\r", "\n").encode()
    assert parse(encode(text.encode())) == [Event("message", expected)]


def test_a_reader_knows_how_to_connect_anew_without_any_event() -> None:
    parser = Parser()
    assert parser.last_id == ""
    assert parser.reconnection_ms is None
    assert parser.feed(b"retry: 250\n\nid: 7\n\n") == []
    assert parser.last_id == "7"
    assert parser.reconnection_ms == 250
