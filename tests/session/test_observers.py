"""What a daemon tells its recorder, as callables."""

from bridge.session.observers import UNOBSERVED, Observers


def test_a_daemon_that_is_not_recorded_tells_nobody() -> None:
    assert UNOBSERVED.note("process", "start", {}, session="") is None
    assert (UNOBSERVED.taps, UNOBSERVED.exchanges, UNOBSERVED.secret) == (None, None, None)


def test_each_observer_is_a_callable_of_its_own() -> None:
    noted: list[tuple[object, ...]] = []

    def note(channel: str, kind: str, data: object, /, *, session: str | None = None) -> None:
        noted.append((channel, kind, data, session))

    Observers(note=note).note("mcp", "attempt", {"n": 1}, session="s")
    assert noted == [("mcp", "attempt", {"n": 1}, "s")]
