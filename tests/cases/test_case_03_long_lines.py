"""Case 03: a line may be as long as it likes, whichever way it goes and however it is cut."""

import hashlib

import pytest

from tests.cases.conftest import Spawn
from tests.peers.agent import scripted

MIB = 1 << 20


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 200_000, MIB, 10 * MIB])
def test_a_long_update_arrives_whole(spawn: Spawn, loop: str, size: int) -> None:
    host = spawn("--loop", loop)
    assert digest(host.reply(scripted(), f"size {size}")) == digest("x" * size)
    assert host.reply(scripted(), "say after") == "after"
    host.shutdown()


def test_several_long_updates_stay_in_order(spawn: Spawn, talk: dict[str, str]) -> None:
    host = spawn(**talk)
    reply = host.reply(scripted(), f"say <\nsize 200000\nsay |\nsize {10 * MIB}\nsay >")
    assert digest(reply) == digest("<" + "x" * 200_000 + "|" + "x" * 10 * MIB + ">")
    host.shutdown()


@pytest.mark.parametrize("pieces", ["1024 0.001", "1000", "3"])
def test_a_line_in_pieces_is_one_line(spawn: Spawn, loop: str, pieces: str) -> None:
    host = spawn("--loop", loop)
    size = 200_000 if pieces != "3" else 6_000
    assert host.reply(scripted(), f"pieces {pieces}\nsize {size}\nsay é") == "x" * size + "é"
    host.shutdown()


def test_a_long_prompt_reaches_the_agent(spawn: Spawn, talk: dict[str, str]) -> None:
    host = spawn(**talk)
    text = "é北" + "y" * 10 * MIB
    assert host.reply(scripted(), f"{text}\nsay done").endswith("done")
    host.shutdown()
    [[block]] = host.log.prompts()
    assert digest(block["text"]) == digest(f"{text}\nsay done")


def test_a_long_tool_update_is_handed_on(spawn: Spawn) -> None:
    host = spawn()
    host.hello("update")
    call = '{"sessionUpdate":"tool_call","toolCallId":"t","title":"t","rawOutput":"%s"}'
    # The directive's own JSON is what is long here.
    assert host.reply(scripted(), f"update {call % ('z' * MIB)}\nsay ok") == "ok"
    [update] = [e["update"] for e in host.events("update") if e["update"].get("toolCallId")]
    assert update["rawOutput"] == "z" * MIB
    host.shutdown()
