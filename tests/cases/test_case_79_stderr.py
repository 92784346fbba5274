"""Case 79: what an agent writes to stderr is always read, and only a bounded part is kept."""

import pytest

from tests.cases.conftest import Spawn, Way
from tests.peers.agent import scripted

MUCH = 2 << 20


def test_megabytes_before_each_answer_hold_up_nothing(spawn: Spawn, way: Way) -> None:
    host = spawn("--loop", way.loop, **way.talk)
    agent = scripted(f"stderr={MUCH}")
    assert host.reply(agent, "say one") == "one"
    assert host.reply(agent, "say two") == "two"
    host.shutdown()
    assert len(host.stderr()) < MUCH


def test_the_tail_of_it_explains_a_death(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    script = f"head -c {MUCH} /dev/zero | tr '\\0' z >&2; echo last words >&2; exit 3"
    response = host.prompt(["sh", "-c", script], "hi")
    assert response["ok"] is False
    assert response["stderr"].rstrip().endswith("last words")
    assert len(response["stderr"]) <= 1 << 16
    host.shutdown()
    # Hosts append the last 4000 bytes of the daemon's stderr to the error.
    assert "last words" in host.stderr()[-4000:]


@pytest.mark.parametrize("data", ["fffe8081", "00" * 100, "f09f8e"])
def test_bytes_that_are_no_text_harm_nothing(spawn: Spawn, data: str) -> None:
    host = spawn()
    script = f"printf '{''.join(chr(92) + f'{byte:03o}' for byte in bytes.fromhex(data))}' >&2"
    command = ["sh", "-c", f'{script}; exec "$@"', "agent", *scripted()]
    assert host.reply(command, "say fine") == "fine"
    host.shutdown()


def test_a_host_that_reads_no_stderr_holds_up_nothing(spawn: Spawn) -> None:
    """The daemon's own stderr is a pipe that nobody reads."""
    host = spawn(unread_stderr=True)
    agent = scripted(f"stderr={MUCH}")
    assert host.reply(agent, "say one") == "one"
    assert host.reply(agent, "say two") == "two"
    assert host.call("shutdown")["ok"] is True
    host.close_stdin()
    assert host.exit_code() == 0


def test_a_subscribed_host_gets_it_as_events(spawn: Spawn) -> None:
    host = spawn()
    host.hello("stderr")
    command = ["sh", "-c", 'echo starting up >&2; exec "$@"', "agent", *scripted()]
    assert host.reply(command, "say fine") == "fine"
    host.wait(lambda: "starting up" in "".join(e["text"] for e in host.events("stderr")))
    host.shutdown()
