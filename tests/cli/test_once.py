"""`once CONFIG.json`: the reply and nothing else on stdout, or words on stderr and an exit code."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.peers.agent import scripted
from tests.peers.host import DAEMON, config


def once(file: Path, *options: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([*DAEMON, "once", *options, str(file)], capture_output=True, timeout=60)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_the_bare_reply_is_on_stdout_and_the_file_is_gone(tmp_path: Path, loop: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config("A", ["say é 北 no line end"], scripted())))
    ended = once(file, "--loop", loop)
    assert (ended.returncode, ended.stdout) == (0, "é 北 no line end".encode())
    assert not file.exists()


def test_what_fails_has_its_words_last_on_stderr(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    prompt = 'say half an answer\nerror {"code":-1,"message":"m","data":{"details":"worn out"}}'
    file.write_text(json.dumps(config("A", [prompt], scripted("stderr=4000"))))
    ended = once(file)
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert ended.stderr.endswith(b"\nacp-mcp-bridge: worn out\n")
    assert not file.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{nope", "config.json"),
        ("[]", "not a JSON object"),
        ("{}", '"messages" is missing'),
        ('{"messages":"hi"}', "messages"),
        ('{"messages":[],"client_services":["net"]}', "client_services"),
    ],
)
def test_a_config_that_is_wrong_is_named_and_gone_too(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)
    ended = once(file)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert words in ended.stderr.decode()
    assert b"Traceback" not in ended.stderr
    assert not file.exists()


def test_a_key_that_no_config_has_is_told_and_ignored(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config("A", ["say hello"], scripted(), turn_timout=5, x_later=1)))
    ended = once(file)
    assert (ended.returncode, ended.stdout) == (0, b"hello")
    told = ended.stderr.decode()
    assert "'turn_timout', it is ignored; did you mean 'turn_timeout'?" in told
    assert "'x_later', it is ignored\n" in told


def test_a_file_that_cannot_be_deleted_is_not_used(tmp_path: Path) -> None:
    # Through a descriptor: its name can be read, and nobody can delete it.
    config_file = tmp_path / "config.json"
    config_file.write_text(json.dumps(config("A", ["say hello"], scripted())))
    with config_file.open() as file:
        ended = subprocess.run(
            [*DAEMON, "once", "/dev/fd/0"], stdin=file, capture_output=True, timeout=60
        )
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert b"cannot delete /dev/fd/0: " in ended.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    ended = once(tmp_path / "nothing.json")
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert b"nothing.json" in ended.stderr
