"""Case 13: updates for a session whose id is not known yet are held, and then handed over."""

import json

from tests.cases.conftest import Spawn
from tests.peers.agent import scripted
from tests.peers.host import Host


def early(host: Host) -> list[int]:
    """The places of the updates that came before the session existed."""
    found = [event["update"] for event in host.events("update")]
    return [u["index"] for u in found if u["sessionUpdate"] == "available_commands_update"]


def test_an_early_update_is_seen_once_and_after_the_session(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.hello("update")
    opened = host.call("open", 5, config={"command": scripted("early=1", "session=s-9")})
    assert opened["result"]["session_id"] == "s-9"
    event = host.event("update", 5)
    assert host.frames.index(event) > host.frames.index(opened)
    assert event["turn"] is None
    assert host.reply(None, "say fine") == "fine"
    assert early(host) == [0]
    host.shutdown()


def test_many_early_updates_keep_their_order(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.hello("update")
    assert host.reply(scripted("early=500"), "say fine") == "fine"
    host.wait(lambda: len(early(host)) == 500, what="500 updates")
    assert early(host) == list(range(500))
    host.shutdown()


def test_early_updates_do_not_hold_up_any_generation(spawn: Spawn, talk: dict[str, str]) -> None:
    host = spawn(**talk)
    assert host.reply(scripted("early=500"), "say fine") == "fine"
    host.shutdown()


def test_what_is_held_is_bounded(spawn: Spawn) -> None:
    host = spawn()
    update = {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "x" * 9000},
    }
    params = {"sessionId": "no-such-session", "update": update}
    line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}) + "\n"
    # 18 MB for a session that never comes to be.
    flood = f"bytes {(line.encode() * 100).hex()}\n" * 20
    assert host.reply(scripted(), f"{flood}say fine") == "fine"
    with open(f"/proc/{host.pid}/status") as status:
        peak = next(int(row.split()[1]) for row in status if row.startswith("VmRSS"))
    assert peak < 200 << 10
    host.shutdown()


def test_updates_for_another_session_never_reach_this_one(spawn: Spawn) -> None:
    host = spawn()
    stray = '{"sessionId":"other","update":{"sessionUpdate":"agent_message_chunk","content":'
    stray += '{"type":"text","text":"STRAY"}}}'
    assert host.reply(scripted(), f"notify session/update {stray}\nsay mine") == "mine"
    host.shutdown()
