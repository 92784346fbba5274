"""How the daemon ends: each cause its exit code, everything answered first, nothing left behind."""

import json
import signal
from pathlib import Path

import anyio
import pytest

from bridge import app
from bridge.config import Settings
from bridge.session.proxies import Policy
from tests.peers.agent import scripted
from tests.peers.host import Host
from tests.peers.processes import wait_until

LOOPS = ["asyncio", "uvloop", "trio"]
DEAF = scripted("spawn=deaf", "eof=ignore", "term=ignore")


async def causes_of_an_end() -> None:
    first = app.Ending()
    first.set(0)
    first.set(1)
    assert (first.code, first.event.is_set(), first.signalled) == (0, True, False)
    first.interrupt(143)
    assert (first.code, first.signalled) == (143, True)
    signalled = app.Ending()
    signalled.interrupt(130)
    signalled.set(0)
    assert (signalled.code, signalled.event.is_set(), signalled.signalled) == (130, True, True)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_first_cause_counts_and_a_signal_at_any_time(backend: str) -> None:
    anyio.run(causes_of_an_end, backend=backend)


def test_the_settings_say_which_proxies_there_are() -> None:
    assert app.policy(Settings()) == Policy(mcp=True, model=True, intercept=None)
    off = Settings(mcp_proxy="off", model_proxy="off", intercept="http://x/")
    assert app.policy(off) == Policy(mcp=False, model=False, intercept="http://x/")


@pytest.mark.parametrize("loop", LOOPS)
def test_a_signal_before_anything_was_said(tmp_path: Path, loop: str) -> None:
    with Host(tmp_path, "--loop", loop) as host:
        host.hello()
        host.signal(signal.SIGTERM)
        assert host.exit_code(5) == 143
        host.check()
        assert len(host.frames) == 1


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


@pytest.mark.parametrize("loop", LOOPS)
def test_a_signal_hurries_an_end_that_has_begun_at_leisure(tmp_path: Path, loop: str) -> None:
    with Host(tmp_path, "--loop", loop) as host:
        host.start(DEAF, "say up\nhang", close_grace=60)
        assert wait_until(lambda: host.log.messages("session/prompt"))
        host.close_stdin()
        assert wait_until(lambda: host.log.messages("session/cancel"))
        host.signal(signal.SIGTERM)
        assert host.exit_code(8) == 143
        host.check()


def test_a_signal_during_a_shutdown_still_has_it_answered(tmp_path: Path) -> None:
    with Host(tmp_path) as host:
        host.start(DEAF, "say up\nhang", close_grace=60)
        assert wait_until(lambda: host.log.messages("session/prompt"))
        shutdown = host.send("shutdown")
        assert wait_until(lambda: host.log.messages("session/cancel"))
        host.signal(signal.SIGINT)
        assert host.exit_code(8) == 130
        assert host.answer(shutdown)["ok"] is True
        host.check()


def test_a_host_that_reads_nothing_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    with Host(tmp_path) as host:
        host.hello("update")
        host.pause()
        host.start(scripted(), "flood 20000 100\nwait cancel")
        assert wait_until(lambda: host.log.messages("session/prompt"))
        host.signal(signal.SIGTERM)
        assert host.exit_code(5) == 143
        assert host.survivors() == []


def test_the_end_of_the_framing_is_the_end(tmp_path: Path) -> None:
    with Host(tmp_path) as host:
        host.hello()
        host.raw((1 << 40).to_bytes(8, "big"))
        assert host.exit_code(9) == 0
        assert host.frames[-1]["code"] == "invalid_request"
        host.check()


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
    closed = [r for r in records if r.get("ch") == "acp" and "session/close" in str(r.get("msg"))]
    assert closed
