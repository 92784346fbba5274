"""Messages without a turn of their own: accepted once, delivered in order, withdrawn at the end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import BridgeError
from bridge.session.mailbox import Block, Mailbox


def text(words: str) -> list[Block]:
    return [{"type": "text", "text": words}]


def test_messages_are_taken_all_at_once_in_order_with_a_blank_line_between() -> None:
    box = Mailbox()
    for name in ("one", "two", "three"):
        ident, new = box.accept(text(name), name, "queue")
        assert (ident, new) == (name, True)
        box.put(ident, text(name))
    assert len(box) == 3
    ids, blocks = box.take()
    assert ids == ["one", "two", "three"]
    words = [block["text"] for block in blocks]
    assert words == ["one", "\n\n", "two", "\n\n", "three"]
    assert (len(box), box.take()) == (0, ([], []))


def test_the_same_message_again_is_not_new_whether_delivered_or_not() -> None:
    box = Mailbox()
    assert box.accept(text("a"), "m", "queue") == ("m", True)
    assert box.accept(text("a"), "m", "queue") == ("m", False)
    box.put("m", text("a"))
    box.take()
    assert box.accept(text("a"), "m", "queue") == ("m", False)


@pytest.mark.parametrize(("words", "mode"), [("b", "queue"), ("a", "steer")])
def test_another_message_under_a_known_id_is_refused(words: str, mode: str) -> None:
    box = Mailbox()
    box.accept(text("a"), "m", "queue")
    with pytest.raises(BridgeError, match="'m'") as caught:
        box.accept(text(words), "m", mode)
    assert caught.value.code == "invalid_request"


def test_a_message_that_was_not_accepted_after_all_frees_its_id() -> None:
    box = Mailbox()
    box.accept(text("a"), "m", "steer")
    box.retract("m")
    box.retract("never there")
    assert box.accept(text("b"), "m", "queue") == ("m", True)


@given(st.lists(st.none() | st.sampled_from(["message-1", "message-2", "message-3", "x"])))
def test_ids_of_our_own_never_meet_the_host_s(names: list[str | None]) -> None:
    box = Mailbox()
    given_: set[str] = set()
    for index, name in enumerate(names):
        if name in given_:
            continue
        ident, new = box.accept(text(str(index)), name, "queue")
        assert new
        assert ident not in given_
        given_.add(ident)


def test_withdrawing_empties_the_box_and_ends_its_hold() -> None:
    box = Mailbox()
    box.held = True
    box.put("a", text("a"))
    box.put("b", text("b"))
    assert box.withdraw() == ["a", "b"]
    assert (len(box), box.held) == (0, False)
