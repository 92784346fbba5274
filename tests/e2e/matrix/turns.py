"""Plain turns: text, conversation, image, usage, the agent's own calls, ACP version 2."""

import base64
import struct
import zlib

from tests.e2e.matrix.desk import ECHO, Desk, NotOffered
from tests.e2e.matrix.scenario import scenario
from tests.peers.processes import wait_until


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


SIDE = 16
PIXELS = zlib.compress((b"\0" + b"\x20\x60\xa0" * SIDE) * SIDE)
HEAD = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
PNG = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", HEAD) + _chunk(b"IDAT", PIXELS) + _chunk(b"IEND", b"")


@scenario("Text turn")
def text(desk: Desk) -> str:
    response = desk.says("good morning")
    assert response["outcome"] == "completed", response["outcome"]
    assert len(desk.asked("SAY good morning")) >= 1, "the model was not asked"
    return ""


@scenario("Several turns of one conversation")
def turns(desk: Desk) -> str:
    desk.says("good morning")
    desk.says("good night")
    request = str(desk.asked("SAY good night")[0]["body"])
    before = request.partition("SAY good night")[0]
    assert "SAY good morning" in before, "the second request lacks the first turn"
    said = [e["turn"] for e in desk.host.events("update") if "agent_message" in str(e)]
    assert {1, 2} <= set(said), f"updates of turns {sorted(set(said))}"
    return ""


@scenario("Image in the prompt")
def image(desk: Desk) -> str:
    opened = desk.open()
    if not (opened["capabilities"].get("promptCapabilities") or {}).get("image"):
        raise NotOffered("promptCapabilities.image")
    data = base64.b64encode(PNG).decode()
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    response = desk.turn([{"type": "text", "text": "SAY seen"}, picture])
    reply = response["result"]["reply"].strip()
    assert reply == "seen", f"the reply was {reply!r}"
    assert desk.asked(data), "the picture did not reach the model"
    return ""


@scenario("Usage of a turn", tells=True)
def usage(desk: Desk) -> str:
    response = desk.says("counted")
    seen = [e["usage"] for e in desk.host.events("model", purpose="turn") if "usage" in e]
    assert seen, "no model event has the usage"
    if response["usage"]:
        return "in the turn's result"
    told = desk.host.events("update")
    if any(event["update"]["sessionUpdate"] == "usage_update" for event in told):
        return "by usage_update"
    raise NotOffered("the agent tells none; the model events do")


@scenario("Its own model calls are marked", tells=True)
def side(desk: Desk) -> str:
    desk.says("one")
    desk.says("two")
    if (awaited := desk.agent.side) is not None:
        desk.host.event("model", desk.agent.patience, side=awaited)

    def all_told() -> bool:
        return len(desk.host.events("model")) >= len(desk.model.outcomes())

    assert wait_until(all_told, 20), "a model call was not told"
    events = desk.host.events("model")
    plain = [e for e in events if e["purpose"] == "turn" and not e.get("again")]
    assert len(plain) == 2, f"{len(plain)} calls look like those of the two turns"
    others = sorted({e.get("side", e["purpose"]) for e in events if e not in plain})
    return ", ".join(others) or "makes none"


@scenario("ACP version 2")
def v2(desk: Desk) -> str:
    opened = desk.open(protocol_version=2)
    if opened["protocol_version"] != 2:
        raise NotOffered("it answers with version 1")
    desk.says("good morning")
    reply = desk.turn(ECHO)["result"]["reply"]
    assert "echo: hi" in reply, f"the reply was {reply!r}"
    return ""
