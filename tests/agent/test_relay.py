"""The relay passes on every byte, both ways, and to each side it is the other one."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.peers.processes import MARKER, alive, survivors, wait_until

BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
AGENT = Path(__file__).parents[1] / "peers/byte_agent.py"
PATIENCE = 60

CLIENT_LINES = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{}}}\n'
    b'{"jsonrpc":"2.0","id":7,"method":"_acme/ping","params":{"x":1},"extra":true}\n'
    b'{ "id" : 1.0 , "jsonrpc":"2.0","method":"a","params":{"z":1,"a":"\\u00e9\xc3\xa9"}}\r\n'
    b"\n\r\n42\nnull\n[]\n[1,2]\nplain text\n\x1b[?25l\n\xff\xfe\x00\x01\n"
    b'{"jsonrpc":"2.0","id":[1],"result":null}\n{"a":"\xe2\x80\xa8\xe2\x80\xa9\xc2\x85\\u000b"}\n'
    b'\xef\xbb\xbf{"bom":true}\n{"lone":"\\ud83d"}\n{"n":1e400,"big":123456789012345678901234567890}\n'
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"bridge:1"}}\n'
    b'{"unfinished":'
)
AGENT_LINES = (
    b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"x"}}}\n'
    b'{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"mood_update",'
    b'"_meta":{"a.b/c":[1,{"d":null}]}}}}\n' + CLIENT_LINES
)


class Client:
    """The relay as a client starts it; its agent is the agent of bytes."""

    def __init__(self, folder: Path, *steps: str, options: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.marker = uuid.uuid4().hex
        agent = [sys.executable, "-I", "-S", str(AGENT), str(folder), *steps]
        self.process = subprocess.Popen(
            [BRIDGE, "acp", *options, "--", *agent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {MARKER: self.marker},
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin = self.process.stdin
        self.stdout = self.process.stdout

    def exchange(self, data: bytes = b"") -> tuple[bytes, bytes]:
        """Writes `data`, closes, reads to the end: stdout and stderr."""
        return self.process.communicate(data, timeout=PATIENCE)

    def say(self, data: bytes) -> None:
        self.stdin.write(data)
        self.stdin.flush()

    def code(self) -> int:
        return self.process.wait(PATIENCE)

    def heard(self) -> bytes:
        return (self.folder / "heard").read_bytes()

    def until(self, name: str) -> str:
        """A file's text, once the agent has written it."""
        path = self.folder / name
        assert wait_until(lambda: path.exists() and path.read_text(), PATIENCE)
        return path.read_text()

    def dispose(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:
                continue


Spawn = Callable[..., Client]


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    clients: list[Client] = []

    def start(*steps: str, options: tuple[str, ...] = (), **files: bytes) -> Client:
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
        clients.append(Client(tmp_path, *steps, options=options))
        return clients[-1]

    yield start
    for client in clients:
        client.dispose()


@pytest.fixture(params=["asyncio", "uvloop", "trio"])
def loop(request: pytest.FixtureRequest) -> tuple[str, str]:
    return "--loop", request.param


@pytest.fixture(params=["plain", "recorded"])
def recording(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, ...]:
    return ("--record", str(tmp_path / "trace")) if request.param == "recorded" else ()


# Bytes


def test_every_byte_goes_both_ways_in_order(
    spawn: Spawn, loop: tuple[str, str], recording: tuple[str, ...]
) -> None:
    client = spawn("send lines", "eof", options=(*loop, *recording), lines=AGENT_LINES)
    out, _ = client.exchange(CLIENT_LINES)
    assert out == AGENT_LINES
    assert client.heard() == CLIENT_LINES
    assert client.code() == 0


def test_half_a_line_reaches_the_other_side_before_its_end(
    spawn: Spawn, loop: tuple[str, str]
) -> None:
    client = spawn("until 5", "send half", "until 10", "exit 0", options=loop, half=b'{"a":')
    client.say(b'{"x":')
    assert client.stdout.read(5) == b'{"a":'
    client.say(b"12345")
    assert client.code() == 0


def test_megabytes_of_anything_both_ways_at_once(
    spawn: Spawn, loop: tuple[str, str], recording: tuple[str, ...]
) -> None:
    source = random.Random(5)
    up, down = source.randbytes(12 << 20), source.randbytes(9 << 20)
    client = spawn("send data 100003", "eof", options=(*loop, *recording), data=down)
    out, _ = client.exchange(up)
    assert hashlib.sha256(out).digest() == hashlib.sha256(down).digest()
    assert hashlib.sha256(client.heard()).digest() == hashlib.sha256(up).digest()


def test_a_line_of_256_mib_streams_through(spawn: Spawn) -> None:
    size, count = 1 << 20, 256
    client = spawn(f"flood {size} {count}", "exit 0")
    peak, total = 0, 0
    while data := client.stdout.read(1 << 20):
        total += len(data)
        status = Path(f"/proc/{client.process.pid}/status").read_text()
        peak = max(peak, int(status.partition("VmHWM:")[2].split()[0]))
    assert total == size * count
    assert peak < 80 << 10, f"{peak} KiB"


def test_an_agent_waits_for_a_client_that_does_not_read(spawn: Spawn) -> None:
    client = spawn("flood 65536 1000", "exit 0")
    client.until("written")
    before = -1
    # Progress ends once all the pipes are full; then nothing moves, however often one looks.
    while (now := int(client.until("written") or 0)) != before:
        before = now
        assert not wait_until(lambda: client.until("written") != str(now), 0.5) or now < 8 << 20
    assert now < 8 << 20
    assert len(client.stdout.read()) == 65536 * 1000


def test_stderr_is_passed_on(
    spawn: Spawn, loop: tuple[str, str], recording: tuple[str, ...]
) -> None:
    words = b"warn\n\xff\x00 no end" + b"z" * 300_000
    client = spawn("err words", "exit 0", options=(*loop, *recording), words=words)
    assert client.exchange()[1] == words


# Ends


@pytest.mark.parametrize("code", [0, 1, 7, 127, 255])
def test_the_exit_code_is_the_agent_s(spawn: Spawn, code: int) -> None:
    assert spawn(f"exit {code}").code() == code


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGINT", "SIGABRT"])
def test_a_death_by_signal_is_the_agent_s(spawn: Spawn, name: str, loop: tuple[str, str]) -> None:
    client = spawn(f"kill {name}", options=loop)
    assert client.code() == -getattr(signal, name)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGQUIT"])
def test_signals_are_passed_on(spawn: Spawn, name: str, loop: tuple[str, str]) -> None:
    client = spawn(f"trap {name} 42", "hang", options=loop)
    client.until("ready")
    client.process.send_signal(getattr(signal, name))
    assert client.code() == 42


def test_what_an_agent_says_after_its_client_s_last_word_arrives(
    spawn: Spawn, loop: tuple[str, str]
) -> None:
    client = spawn("eof", "send late 10 0.01", "exit 3", options=loop, late=b"late words\n" * 40)
    out, _ = client.exchange(b"bye")
    assert out == b"late words\n" * 40
    assert client.code() == 3


def test_what_an_agent_wrote_last_arrives_though_a_child_of_its_holds_the_pipe(
    spawn: Spawn, loop: tuple[str, str]
) -> None:
    client = spawn("grandchild", "send last", "exit 5", options=loop, last=b"last words")
    assert client.stdout.read() == b"last words"
    assert client.code() == 5
    assert survivors(client.marker, 10) == []


def test_the_end_of_an_agent_s_stdout_is_passed_on_while_it_lives(
    spawn: Spawn, loop: tuple[str, str]
) -> None:
    client = spawn("send words", "close stdout", "until 4", "exit 6", options=loop, words=b"done")
    assert client.stdout.read() == b"done"
    assert client.process.poll() is None
    client.say(b"more")
    assert client.code() == 6


def test_a_client_learns_that_its_agent_listens_no_more(spawn: Spawn) -> None:
    client = spawn("close stdin", "hang")

    def say_on() -> None:
        while True:
            client.say(b"x" * 65536)

    with pytest.raises(BrokenPipeError):
        say_on()


def test_an_agent_learns_that_its_client_listens_no_more(spawn: Spawn) -> None:
    client = spawn("flood 65536 100000")
    client.stdout.read(1)
    client.stdout.close()
    # Python ends on the broken pipe with code 1.
    assert client.code() == 1


def test_a_deaf_agent_and_all_it_started_go_when_the_client_does(spawn: Spawn) -> None:
    client = spawn("deafen", "grandchild", "hang")
    grandchild = int(client.until("pid"))
    assert alive(grandchild)
    client.stdin.close()
    client.code()
    assert survivors(client.marker, 5) == []


def test_a_killed_relay_takes_the_agent_and_all_it_started_along(
    spawn: Spawn, loop: tuple[str, str], recording: tuple[str, ...]
) -> None:
    client = spawn("deafen", "grandchild", "hang", options=(*loop, *recording))
    assert alive(int(client.until("pid")))
    os.killpg(client.process.pid, signal.SIGKILL)
    client.code()
    assert survivors(client.marker, 10) == []


def test_many_relays_at_once_do_not_mix(tmp_path: Path) -> None:
    outs: dict[int, bytes] = {}

    def run(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "data").write_bytes(bytes([number]) * 500_000)
        client = Client(folder, "send data 5000", "eof")
        try:
            outs[number] = client.exchange(bytes([number + 100]) * 300_000)[0]
            assert client.heard() == bytes([number + 100]) * 300_000
        finally:
            client.dispose()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert outs == {number: bytes([number]) * 500_000 for number in range(4)}
