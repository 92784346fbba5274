"""A child session, for the session that it works for."""

from bridge.agent.v2.children import Child
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Notification, Response
from tests.agent.v2.wire import Inner
from tests.session.updating import chunk


def test_what_a_child_says_is_told_of_it_and_starts_no_turn() -> None:
    parent = Inner()
    child = Child(parent, "c")
    assert child.name == parent.name
    child.update(chunk("x", "m"))
    child.late(chunk("y", "m"))
    child.child("d", chunk("z", "m"))
    assert [one[0] for one in parent.heard] == ["c", "c", "d"]
    parent.heard.clear()
    assert child.begun()(Response(b"", Raw(b"null"), None, b"")) is None
    child.anew()
    assert parent.heard == []
    child.notification(Notification("x", Raw(b"null"), b""))
    assert parent.heard == ["x"]
