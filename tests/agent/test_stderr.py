"""The share of the daemon's stderr that an agent gets."""

from hypothesis import given
from hypothesis import strategies as st

from bridge.agent.stderr import SHARE, TAIL, StderrShare


def test_a_little_goes_on_as_it_is() -> None:
    share = StderrShare()
    assert share.feed(b"a warning\n") == b"a warning\n"
    assert share.rest() == b""


def test_a_flood_is_cut_and_its_end_explains_a_failure() -> None:
    share = StderrShare()
    passed = share.feed(b"x" * (SHARE + 100_000)) + share.feed(b"the last words\n")
    assert passed == b"x" * SHARE
    rest = share.rest()
    assert b"held back 100015 bytes" in rest
    assert rest.endswith(b"the last words\n")
    assert len(rest) < TAIL + 200
    assert share.rest() == b""


def test_a_turn_has_a_share_of_its_own() -> None:
    share = StderrShare()
    share.feed(b"x" * (SHARE + 1))
    share.refill()
    assert share.feed(b"y") == b"y"
    assert share.rest() == b""


@given(st.lists(st.binary(max_size=SHARE), max_size=6))
def test_what_goes_on_is_a_beginning_of_what_came(chunks: list[bytes]) -> None:
    share = StderrShare()
    passed = b"".join(share.feed(chunk) for chunk in chunks)
    assert passed == b"".join(chunks)[:SHARE]
