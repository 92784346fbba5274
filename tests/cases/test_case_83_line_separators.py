"""Case 83: a line ends at a line feed and nowhere else, in either direction."""

import json

import pytest

from tests.cases.conftest import Spawn, Way
from tests.peers.agent import scripted

SEPARATORS = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei"


def test_one_message_stays_one_message(spawn: Spawn, way: Way) -> None:
    host = spawn("--loop", way.loop, **way.talk)
    assert host.reply(scripted(), f"say {SEPARATORS}\nsay  end") == f"{SEPARATORS} end"
    assert host.reply(scripted(), "say next") == "next"
    host.shutdown()


def test_events_carry_it_unharmed(spawn: Spawn) -> None:
    host = spawn(framing="lines")
    host.hello("update")
    host.reply(scripted(), f"say {SEPARATORS}")
    assert host.event("update")["update"]["content"]["text"] == SEPARATORS
    host.shutdown()


def test_escaped_control_characters_are_not_line_ends_either(spawn: Spawn) -> None:
    host = spawn()
    text = json.dumps("\x0b\x1c\r\n\u2028")
    assert host.reply(scripted(), f"say {text}") == "\x0b\x1c\r\n\u2028"
    host.shutdown()


def test_the_agent_gets_them_escaped(spawn: Spawn, talk: dict[str, str]) -> None:
    host = spawn(**talk)
    text = f"{SEPARATORS}\nsay ok"
    assert host.reply(scripted(), text).endswith("ok")
    host.shutdown()
    [record] = [r for r in host.log.records() if r.get("in", {}).get("method") == "session/prompt"]
    assert record["in"]["params"]["prompt"][0]["text"] == text
    assert record["separators"] is False


@pytest.mark.parametrize("options", [("end=crlf",), ("bom=1",), ("end=crlf", "bom=1")])
def test_carriage_returns_and_byte_order_marks(
    spawn: Spawn, loop: str, options: tuple[str, ...]
) -> None:
    host = spawn("--loop", loop)
    assert host.reply(scripted(*options), "say one\nsay  two") == "one two"
    host.shutdown()


def test_a_host_may_send_them_too(spawn: Spawn) -> None:
    host = spawn(framing="lines")
    frame = b'\xef\xbb\xbf{"id":1,"operation":"status"}\r\n\r\n\n'
    host.raw(frame)
    assert host.answer(1)["ok"] is True
    host.raw('{"id":"a\u2028b","operation":"status"}\n'.encode())
    assert host.answer("a\u2028b")["ok"] is True
    host.raw(b'{"id":99,"operation":"shutdown"}\n')
    assert host.answer(99)["ok"] is True


def test_half_a_character_pair_survives(spawn: Spawn, talk: dict[str, str]) -> None:
    host = spawn(**talk)
    assert host.reply(scripted(), 'say "x \\ud83d y"') == "x \ud83d y"
    assert host.reply(scripted(), "say next") == "next"
    host.shutdown()
