"""Frames survive any way of cutting the stream."""

from hypothesis import given
from hypothesis import strategies as st

from bridge.trace import frames
from bridge.trace.frames import Frame, FrameParser, Kind

FRAMES = st.lists(
    st.builds(
        Frame,
        st.sampled_from(list(Kind)).map(int),
        st.integers(0, 65535),
        st.integers(0, 2**63),
        st.binary(max_size=200),
    )
)


def written(items: list[Frame]) -> bytes:
    return b"".join(
        frames.head(Kind(item.kind), item.stream, item.t, len(item.payload)) + item.payload
        for item in items
    )


@given(FRAMES, st.lists(st.integers(1, 60), min_size=1))
def test_frames_come_out_as_they_went_in_however_they_are_cut(
    items: list[Frame], sizes: list[int]
) -> None:
    data = written(items)
    parser, got, at, turn = FrameParser(), [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        got += parser.feed(data[at : at + size])
        at, turn = at + size, turn + 1
    assert got == items


def test_heads_are_shown_as_latin_1_and_all_else_as_it_is() -> None:
    data = {"headers": [(b"A", b"\xff")], "target": b"/", "status": 200, "list": ["a", ["b"]]}
    assert frames.shown(data) == data | {"headers": [["A", "\xff"]], "target": "/"}
    assert frames.shown({"headers": [], "reason": b""}) == {"headers": [], "reason": ""}


def test_a_frame_that_is_not_complete_is_kept_back() -> None:
    data = written([Frame(Kind.DATA, 1, 2, b"abc")])
    parser = FrameParser()
    assert list(parser.feed(data[:-1])) == []
    assert list(parser.feed(data[-1:])) == [Frame(Kind.DATA, 1, 2, b"abc")]
