"""Case 89: a frame's length counts bytes, and frames may be cut and joined anywhere."""

import json
import random

import pytest

from tests.cases.conftest import Spawn
from tests.peers.agent import scripted
from tests.peers.host import packet

ALPHABET = 'aé北🎉\u2028\x00"\\ \n\t\u0301\ufeff'


def test_text_beyond_ascii_keeps_the_frames_in_step(spawn: Spawn, talk: dict[str, str]) -> None:
    host = spawn(**talk)
    first = host.start(scripted(), "say é北🎉")
    second = host.start(scripted(), "say zweiter") if host.generation != "A" else None
    assert "é北🎉" in json.dumps(host.answer(first), ensure_ascii=False)
    if second is not None:
        assert host.answer(second)["result"]["reply"] == "zweiter"
    host.shutdown()


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
def test_a_thousand_random_frames(spawn: Spawn, loop: str, size: int) -> None:
    chance = random.Random(f"{loop} {size}")
    host = spawn("--loop", loop)
    count = 1000 if size > 1 else 50
    texts = ["".join(chance.choices(ALPHABET, k=chance.randrange(40))) for _ in range(count)]
    ids = [f"{number} {text}" for number, text in enumerate(texts)]
    data = b"".join(packet({"id": name, "operation": "status"}) for name in ids)
    for start in range(0, len(data), size):
        host.raw(data[start : start + size])
    host.wait(lambda: len(host.frames) == count, what=f"{count} answers")
    assert sorted(frame["id"] for frame in host.frames) == sorted(ids)
    host.shutdown()


@pytest.mark.parametrize("body", [b"{no", b"[]", b"42", b"null", b'"x"', b"{}", b"", b"\xff\xfe"])
def test_what_is_no_request_is_answered_and_the_next_frame_is_read(
    spawn: Spawn, loop: str, body: bytes
) -> None:
    host = spawn("--loop", loop)
    host.raw(len(body).to_bytes(8, "big") + body)
    host.raw(packet({"id": 7, "operation": "status"}))
    assert host.answer(7)["ok"] is True
    refusal = host.frames[0]
    assert (refusal["id"], refusal["ok"]) == (None, False)
    assert refusal["code"] == "invalid_request"
    assert refusal["error"]
    host.shutdown()


def test_the_id_of_a_bad_request_is_kept_when_it_can_be_read(spawn: Spawn) -> None:
    host = spawn()
    for request in ({"id": 5}, {"id": 5, "operation": 7}, {"id": 5, "operation": "dance"}):
        host.raw(packet(request))
    host.wait(lambda: len(host.frames) == 3)
    assert [(frame["id"], frame["ok"]) for frame in host.frames] == [(5, False)] * 3
    assert "dance" in host.frames[2]["error"]
    host.shutdown()


def test_a_length_over_the_ceiling_is_answered_and_ends_the_stream(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    assert host.reply(scripted(), "say before") == "before"
    host.raw((200 << 20).to_bytes(8, "big") + b"x")
    refusal = host.wait(lambda: [f for f in host.frames if f.get("id", 0) is None])[0]
    assert (refusal["ok"], refusal["code"]) == (False, "invalid_request")
    assert host.exit_code() == 0
    host.check()
