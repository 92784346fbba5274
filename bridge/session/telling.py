"""What a host hears of an agent's updates: each as it came, and a few by events of their own.

Rule: what cannot be told costs its own event and nothing else. Called by `bridge.session.session`
for a host that has subscribed.
"""

from bridge.agent.updates import Incoming
from bridge.host.server import HostServer
from bridge.log import log
from bridge.wire import codec

APART = {
    "current_mode_update": ("mode", {"mode_id": "currentModeId"}),
    "notice": ("notice", {name: name for name in ("severity", "title", "description")}),
}
"""Updates that hosts can subscribe to by themselves: the event, and what it holds of them."""


def relay(
    host: HostServer, session: str, turn: int | None, incoming: Incoming, *, replay: bool
) -> None:
    """The `update` event; where it is in other terms than the agent's, the original with it."""
    try:
        raw = incoming.raw()
    except codec.JSONError as error:
        log.warning("session %r: an update that is not UTF-8: %s", session, error)
        return
    host.update(session, turn, raw, replay=replay, original=incoming.original())


def child(
    host: HostServer, session: str, turn: int | None, child_id: str, incoming: Incoming
) -> None:
    """The event of what a child session says, which is no part of the turn."""
    if not host.wants("subagent"):
        return
    try:
        fields = {"subagent": child_id, "update": incoming.raw()}
    except codec.JSONError:
        return
    if (original := incoming.original()) is not None:
        fields["original"] = original
    host.event("subagent", session, turn, fields)


def apart(host: HostServer, session: str, turn: int | None, incoming: Incoming) -> None:
    """The event of its own that an update of one of these kinds has."""
    event, fields = APART[incoming.params.update.kind]
    if not host.wants(event):
        return
    try:
        update = codec.mapping(codec.decode(incoming.raw())) or {}
    except codec.JSONError:
        return
    told = {ours: update.get(theirs) for ours, theirs in fields.items()}
    host.event(event, session, turn, told)
