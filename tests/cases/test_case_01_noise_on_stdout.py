"""Case 01: what is on an agent's stdout and is no JSON-RPC message is noise, and harms nothing."""

import pytest

from tests.cases.conftest import Spawn
from tests.peers.agent import scripted

BANNER = b"db: migrated 3 tables\n\x1b[?25l\n\n"
THINKING = b"[tool] thinking...\n"


def test_banners_and_logs_are_skipped(spawn: Spawn, talk: dict[str, str]) -> None:
    host = spawn(**talk)
    agent = scripted(f"start={BANNER.hex()}", f"between={THINKING.hex()}")
    assert host.reply(agent, "say one, \nsay two") == "one, two"
    host.shutdown()
    assert "db: migrated 3 tables" in host.stderr()
    assert "[tool] thinking..." in host.stderr()
    assert not any("migrated" in str(frame) or "thinking" in str(frame) for frame in host.frames)


def test_noise_is_logged_with_the_session_s_name(spawn: Spawn, loop: str) -> None:
    host = spawn("--loop", loop)
    host.hello()
    agent = scripted(f"start={BANNER.hex()}")
    assert host.answer(host.start(agent, "say fine", session="alpha"))["ok"] is True
    host.shutdown()
    told = [line for line in host.stderr().splitlines() if "db: migrated" in line]
    assert told
    assert "alpha" in told[0]


@pytest.mark.parametrize(
    "noise",
    [
        b"42",
        b"null",
        b'"a string"',
        b"true",
        b'[{"jsonrpc":"2.0","method":"x"}]',
        b"[]",
        b"{}",
        b'{"jsonrpc":"2.0"}',
        b'{"hello":"world"}',
        b'{"jsonrpc":"2.0","id":999,"result":{}}',
        b'{"jsonrpc":"2.0","id":[1],"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}',
        b'{"jsonrpc":"2.0","method":"no/such","params":{}}',
        b'{"jsonrpc":"2.0","method":"session/update","params":[]}',
        b'{"jsonrpc":"2.0","method":"session/update"}',
        b'{"jsonrpc":"2.0","method":7}',
        b"\xff\xfe\x80\x81",
        b"   ",
        b"\r",
        b"[" * 100_000,
        b"{" * 5_000,
        b'{"jsonrpc":"2.0","id":1,',
        b"x" * 300_000,
    ],
    ids=lambda noise: repr(noise[:40]),
)
def test_any_line_that_says_nothing_is_skipped(spawn: Spawn, noise: bytes) -> None:
    host = spawn()
    # One argument of a process may have 128 KiB.
    start = noise + b"\n" if len(noise) < 50_000 else b""
    agent = scripted(f"start={start.hex()}")
    prompt = f"say one, \nbytes {(noise + bytes([10])).hex()}\nsay two"
    assert host.reply(agent, prompt) == "one, two"
    assert host.reply(agent, "say three") == "three"
    host.shutdown()


def test_much_noise_leaves_a_bounded_log(spawn: Spawn) -> None:
    host = spawn()
    flood = (b"n" * 1000 + b"\n") * 50
    assert host.reply(scripted(f"between={flood.hex()}"), "flood 100 3") == "".join(
        f"{number} ".ljust(3, ".")[:3] for number in range(100)
    )
    host.shutdown()
    assert len(host.stderr()) < 1 << 20


def test_an_unknown_request_is_answered_at_once_with_its_own_id(spawn: Spawn) -> None:
    host = spawn()
    line = '{"jsonrpc":"2.0","id":7.5,"method":"_acme/ask","params":{}}'
    assert host.reply(scripted(), f"raw {line}\nsay on") == "on"
    host.shutdown()
    [answer] = [m for m in host.log.messages() if m.get("id") == 7.5]
    assert answer["error"]["code"] == -32601
