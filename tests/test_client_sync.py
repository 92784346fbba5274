"""The blocking API: the async one's calls, from a thread that has no loop."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.client import TurnFailed
from bridge.client_sync import Bridge
from bridge.errors import BridgeError
from tests.peers.agent import scripted
from tests.peers.processes import MARKER, survivors

BACKENDS = ["asyncio", "trio"]


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Checks at the end that nothing the test started is left, threads included."""
    yield os.environ | {MARKER: str(tmp_path)}
    assert survivors(str(tmp_path), 5) == []
    assert [t for t in threading.enumerate() if not t.daemon] == [threading.main_thread()]


@pytest.mark.parametrize("backend", BACKENDS)
def test_sessions_turns_and_their_failures(env: dict[str, str], backend: str) -> None:
    with Bridge.spawn(backend=backend, env=env) as bridge:
        assert bridge.hello["protocol"] == 1
        with (
            bridge.session("a", command=scripted('close_meta={"spent":2}')) as one,
            bridge.session("b", command=scripted()) as two,
        ):
            assert (one.name, one.opened["session_id"]) == ("a", "s")
            assert one.prompt("say 1").reply == "1"
            assert two.prompt("say 2").reply == "2"
            with pytest.raises(TurnFailed, match="out of paper") as failed:
                two.prompt('say so far\nerror {"code":-1,"message":"out of paper"}')
            assert failed.value.turn.reply == "so far"
            with pytest.raises(BridgeError, match="steering"):
                one.steer("left")
            assert set(bridge.request("status")["sessions"]) == {"a", "b"}
            assert one.request("list_sessions") == {"sessions": [{"sessionId": "s", "cwd": "/"}]}
            assert one.close() == {"spent": 2}


@pytest.mark.parametrize("backend", BACKENDS)
def test_events_steers_and_cancels_from_another_thread(env: dict[str, str], backend: str) -> None:
    with (
        Bridge.spawn(backend=backend, env=env) as bridge,
        bridge.session(command=scripted("with=steering")) as session,
    ):
        events = session.events()
        replies = []
        work = "say go\nwait steer\nwait cancel"
        turn = threading.Thread(target=lambda: replies.append(session.prompt(work)))
        turn.start()
        assert next(events)["update"]["content"]["text"] == "go"
        assert session.steer("look") == {"outcome": "injected"}
        assert "look" in next(events)["update"]["content"]["text"]
        assert session.send("say queued")["outcome"] == "accepted"
        session.cancel()
        turn.join()
        assert replies[0].stop_reason == "cancelled"
        session.close()
        assert [event["event"] for event in events] == ["exit"]


def test_what_the_body_raises_comes_out_as_it_is(env: dict[str, str]) -> None:
    raised = KeyError("mine")
    with (
        pytest.raises(KeyError) as caught,
        Bridge.spawn(env=env) as bridge,
        bridge.session(command=scripted()),
    ):
        raise raised
    assert caught.value is raised
