"""What the daemon's end leaves: answers to all that was open, whole recordings, no wait for a host
that reads nothing (bridge/app.py; the ways to end are in test_app.py)."""

import json
import signal
from pathlib import Path

import pytest

from tests.peers.agent import scripted
from tests.peers.host import Host
from tests.peers.processes import wait_until

LOOPS = ["asyncio", "uvloop", "trio"]


@pytest.mark.parametrize("loop", LOOPS)
def test_a_signal_answers_all_that_is_open_and_ends_all_that_runs(
    tmp_path: Path, loop: str
) -> None:
    with Host(tmp_path, "--loop", loop) as host:
        host.hello()
        turns = [
            host.start(agent, "say up\nwait cancel", session=f"s{number}")
            for number, agent in enumerate([scripted(), scripted("spawn=1"), scripted()])
        ]
        waiting = host.start(None, "say never", session="s0")
        opening = host.send("open", session="new", config={"command": scripted("new=silent")})
        host.wait(lambda: len(host.events("update")) == len(turns))
        assert wait_until(lambda: len(host.log.messages("session/new")) == 4)
        host.signal(signal.SIGINT)
        assert host.exit_code(5) == 130
        host.check()
        for turn in turns:
            answer = host.answer(turn)
            assert (answer["ok"], answer["result"]["stop_reason"]) == (True, "cancelled")
            assert answer["result"]["reply"] == "up"
        assert host.answer(waiting)["result"]["stop_reason"] == "cancelled"
        assert host.answer(opening)["code"] == "cancelled"


@pytest.mark.parametrize("agent", [scripted(), scripted("eof=ignore", "term=ignore")])
def test_a_host_that_reads_nothing_cannot_delay_the_end_after_a_signal(
    tmp_path: Path, agent: list[str]
) -> None:
    with Host(tmp_path) as host:
        host.hello("update")
        host.pause()
        host.start(agent, "flood 20000 100\nwait cancel")
        assert wait_until(lambda: host.log.messages("session/prompt"))
        host.signal(signal.SIGTERM)
        assert host.exit_code(5) == 143
        assert host.survivors() == []


@pytest.mark.parametrize("ending", ["shutdown", "eof", "signal"])
def test_a_recording_is_whole_however_the_daemon_ends(tmp_path: Path, ending: str) -> None:
    trace = tmp_path / "run.trace"
    with Host(tmp_path, "--record", str(trace)) as host:
        assert host.reply(scripted(), "say hi") == "hi"
        if ending == "shutdown":
            host.shutdown()
        elif ending == "eof":
            host.close_stdin()
            assert host.exit_code(9) == 0
        else:
            host.signal(signal.SIGTERM)
            assert host.exit_code(5) == 143
        host.check()
    text = trace.read_text()
    assert text.endswith("\n")
    records = [json.loads(line) for line in text.splitlines()]
    kinds = [record.get("kind") for record in records if record.get("ch") == "process"]
    assert kinds == ["start", "exit"]
    assert [r for r in records if r.get("ch") == "acp" and "session/close" in str(r.get("msg"))]
