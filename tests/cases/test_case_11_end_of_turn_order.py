"""Case 11: whatever an agent sends before a turn's response belongs to that turn, in order."""

from tests.cases.conftest import Spawn
from tests.peers.agent import scripted

AGENTS, TURNS = 16, 13
PROMPT = "batch\nsay al\nsay pha\nsay !"


def test_chunks_in_one_write_with_the_response_are_never_lost(
    spawn: Spawn, talk: dict[str, str]
) -> None:
    host = spawn(**talk)
    for _ in range(50):
        assert host.reply(scripted(), PROMPT) == "alpha!"
    host.shutdown()


def test_two_hundred_turns_at_once_with_a_slow_host(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.hello("update")
    host.pause()
    requests = [
        host.start(scripted(), PROMPT, session=f"s{number}")
        for _ in range(TURNS)
        for number in range(AGENTS)
    ]
    host.resume()
    for request in requests:
        response = host.answer(request)
        assert response["ok"] is True
        assert response["result"]["reply"] == "alpha!"
    check_event_order(host.frames)
    host.shutdown()


def check_event_order(frames: list[dict]) -> None:
    """Every session's updates are whole, in order, and before the response of their turn."""
    told: dict[tuple[str, int], list[str]] = {}
    ended: set[tuple[str, int]] = set()
    last = -1
    for frame in frames:
        if frame.get("event") == "update":
            assert frame["seq"] > last
            last = frame["seq"]
            place = (frame["session"], frame["turn"])
            assert place not in ended
            told.setdefault(place, []).append(frame["update"]["content"]["text"])
        elif "turn" in frame and frame.get("ok"):
            ended.add((frame.get("session", ""), frame["turn"]))
    assert len(told) == AGENTS * TURNS
    assert {turn for _, turn in told} == set(range(1, TURNS + 1))
    assert all(texts == ["al", "pha", "!"] for texts in told.values())


def test_text_after_the_response_does_not_reach_the_next_turn(
    spawn: Spawn, talk: dict[str, str]
) -> None:
    host = spawn(**talk)
    assert host.reply(scripted(), "batch\nsay one\nlate TOO-LATE") == "one"
    assert host.reply(scripted(), "say two") == "two"
    host.shutdown()


def test_a_turn_without_text_waits_a_second_for_it(spawn: Spawn, talk: dict[str, str]) -> None:
    host = spawn(**talk)
    assert host.reply(scripted(), "think hm\nlate here it is") == "here it is"
    assert host.reply(scripted(), "say two") == "two"
    host.shutdown()


def test_a_turn_that_stays_without_text(spawn: Spawn, talk: dict[str, str]) -> None:
    host = spawn(**talk)
    response = host.prompt(scripted(), "tool t1 pending\ntool t1 failed\nstop max_tokens")
    if host.generation == "A":
        assert response["ok"] is False
        assert "max_tokens" in response["error"]
        assert "failed" in response["error"]
    else:
        assert response["ok"] is True
        assert response["result"] | {"reply": "", "stop_reason": "max_tokens"} == response["result"]
    host.shutdown()


def test_a_new_message_id_starts_the_reply_anew(spawn: Spawn, talk: dict[str, str]) -> None:
    host = spawn(**talk)
    assert host.reply(scripted(), "id a one\nid a  more\nid b two\nsay , three") == "two, three"
    host.shutdown()
