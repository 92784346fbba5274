"""What a host hears of updates, by a server that writes down what it sends."""

from typing import Any

import pytest

from bridge.agent.updates import Incoming
from bridge.session import telling
from bridge.wire import codec
from bridge.wire.codec import Raw
from tests.session.updating import incoming

NOTICE = {"sessionUpdate": "notice", "severity": "info", "title": "t", "other": 1}


class Host:
    """A `HostServer` as far as it is told of updates."""

    def __init__(self, *wanted: str) -> None:
        self.wanted, self.sent = wanted, list[Any]()

    def wants(self, name: str) -> bool:
        return name in self.wanted

    def event(self, name: str, session: str, turn: int | None, fields: dict[str, Any]) -> None:
        self.sent.append((name, session, turn, fields))

    def update(
        self, session: str, turn: int | None, update: Raw, *, replay: bool, original: Raw | None
    ) -> None:
        self.sent.append((session, turn, codec.decode(update), replay, original))


def test_an_update_is_relayed_as_it_came() -> None:
    host = Host("update")
    telling.relay(host, "s", 3, incoming(NOTICE), replay=True)  # type: ignore[arg-type]
    assert host.sent == [("s", 3, NOTICE, True, None)]


def test_what_a_child_says_is_an_event_of_its_own() -> None:
    host, deaf = Host("subagent"), Host("update")
    telling.child(host, "s", 3, "kid", incoming(NOTICE))  # type: ignore[arg-type]
    telling.child(deaf, "s", 3, "kid", incoming(NOTICE))  # type: ignore[arg-type]
    [(name, session, turn, fields)] = host.sent
    assert (name, session, turn, fields["subagent"]) == ("subagent", "s", 3, "kid")
    assert codec.decode(fields["update"]) == NOTICE
    assert deaf.sent == []


def test_what_is_told_apart() -> None:
    host = Host("notice", "mode")
    telling.apart(host, "s", 3, incoming(NOTICE))  # type: ignore[arg-type]
    mode = {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}
    telling.apart(host, "s", None, incoming(mode))  # type: ignore[arg-type]
    assert host.sent == [
        ("notice", "s", 3, {"severity": "info", "title": "t", "description": None}),
        ("mode", "s", None, {"mode_id": "ask"}),
    ]


def test_what_nobody_wants_is_not_told() -> None:
    host = Host()
    telling.apart(host, "s", 3, incoming(NOTICE))  # type: ignore[arg-type]
    assert host.sent == []


@pytest.mark.parametrize("line", [b'{"params":{"update":{"x":"\xff"}}}'])
def test_what_cannot_be_told_is_left_out(line: bytes) -> None:
    host, whole = Host("notice", "subagent"), incoming(NOTICE)
    broken = Incoming(whole.params, line)
    telling.relay(host, "s", 3, broken, replay=False)  # type: ignore[arg-type]
    telling.apart(host, "s", 3, broken)  # type: ignore[arg-type]
    telling.child(host, "s", 3, "kid", broken)  # type: ignore[arg-type]
    assert host.sent == []
