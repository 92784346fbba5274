"""`python -m bench.recording [--rounds N] [--only NAME,...]`: what recording costs.

The same work with --record and without, in turn, so that what else the machine does falls on both
alike: turns and updates through the daemon, bytes through the relay, exchanges through the model
proxy. What costs throughput is CPU time of the process that does the work; the scribe, which
writes the file, is a process of its own and shown beside it. A line has the work a second of CPU
time (medians of all rounds), what was left of it (the median over the pairs of rounds, one behind
the other), the same by the clock, and the scribe's CPU time as a share of the worker's. There are
many pairs of processes, since where one happens to lie in memory alone can make it a tenth slower.

Those are limits: an agent that costs nothing, and writes as fast as it can. The last rows have an
agent in node, on the official SDK (`tests/peers/install.py node-clients`), and count by the clock
what passes from end to end. The exit code is 3 if a ratio is below the bar.
"""

import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from bench.daemon import AGENT, ENVIRONMENT, Daemon

BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
BAR = 0.85
"""Throughput that is left at the least, while recording."""
NAME = b"acp-scribe"
HERE = Path(__file__).parent
SDK = HERE.parent / ".peers/node-clients/node_modules/@agentclientprotocol/sdk"
NODE = ("node", str(HERE / "node_agent.mjs"), str(SDK))
PIECES = 20
_PAUSE = 0.05
"""Between two bursts: the scribe catches up."""


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used, without its children."""
    return time.clock_gettime((~pid << 3) | 2)


def scribe(pid: int) -> int | None:
    """The process that writes the trace of a process."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if Path(f"/proc/{child}/comm").read_bytes().strip() == NAME:
            return int(child)
    return None


class Subject(Protocol):
    """One process under measurement."""

    pid: int

    def work(self) -> int:
        """Does the work once; how many units it was."""
        ...


class Turns:
    """Small turns, one after the other; or one turn of many updates."""

    def __init__(self, stack: ExitStack, record: list[str], text: str, times: int, units: int):
        self._daemon = Daemon([BRIDGE, "stream", *record])
        stack.callback(self._daemon.close)
        self.pid = self._daemon.process.pid
        self._text, self._times, self._units = text, times, units
        for _ in range(20):
            self._daemon.turn("hi")

    def work(self) -> int:
        for _ in range(self._times):
            self._daemon.turn(self._text)
        return self._units


class Relayed:
    """Small turns through the relay, or updates, counted in bytes if `units` does not say."""

    def __init__(
        self,
        stack: ExitStack,
        record: list[str],
        text: str,
        *,
        times: int = 0,
        units: int = 0,
        agent: Sequence[str] = AGENT,
    ):
        process = subprocess.Popen(
            [BRIDGE, "acp", *record, "--", *agent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        stack.callback(process.wait)
        stack.callback(process.stdin.close)
        self.pid = process.pid
        self._in, self._out = process.stdin, process.stdout.fileno()
        self._ident, self._times, self._units = 0, times, units
        self._params = {"sessionId": "b", "prompt": [{"type": "text", "text": text}]}
        self._call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        self._call("session/new", {"cwd": "/", "mcpServers": []})

    def work(self) -> int:
        for _ in range(self._times):
            self._call("session/prompt", self._params)
        if self._times:
            return self._times
        size = self._call("session/prompt", self._params)
        return self._units or size

    def _call(self, method: str, params: object) -> int:
        self._ident += 1
        message = {"jsonrpc": "2.0", "id": self._ident, "method": method, "params": params}
        self._in.write(json.dumps(message).encode() + b"\n")
        self._in.flush()
        answer, size, last = b'"id":%d,"result"' % self._ident, 0, b""
        while answer not in last:
            data = os.read(self._out, 1 << 20)
            if not data:
                raise EOFError("the relay has ended")
            size += len(data)
            last = (last + data)[-200:]
        return size


class Exchanges:
    """Chat completions through the model proxy, which tells of each (`--events`) as it does in the
    daemon: in one piece, or streamed."""

    def __init__(self, stack: ExitStack, record: list[str], upstream: str, *, stream: bool):
        process = subprocess.Popen(
            [BRIDGE, "model", "--upstream", upstream, "--events", *record],
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
        )
        assert process.stdout is not None
        stack.callback(process.wait)
        stack.callback(process.terminate)
        self.pid = process.pid
        url = urlsplit(json.loads(process.stdout.readline())["url"])
        threading.Thread(target=process.stdout.read, daemon=True).start()
        self._client = http.client.HTTPConnection(url.hostname or "", url.port)
        stack.callback(self._client.close)
        self._path = f"{url.path}/chat/completions"
        message = {"role": "user", "content": "the quick brown fox " * 50}
        self._body = json.dumps({"model": "m", "stream": stream, "messages": [message]}).encode()
        self.work()

    def work(self) -> int:
        for _ in range(30):
            headers = {"Content-Type": "application/json", "Authorization": "Bearer of-the-bench"}
            self._client.request("POST", self._path, self._body, headers)
            answer = self._client.getresponse()
            if answer.status != 200 or not answer.read():
                raise ValueError(answer.status)
        return 30


@contextmanager
def model() -> Iterator[str]:
    """A model server with one canned answer, whole or as a stream of pieces; its URL."""
    chunk = {"choices": [{"index": 0, "delta": {"content": "the quick brown fox"}}]}
    event = b"data: " + json.dumps(chunk).encode() + b"\n\n"
    piece = b"%x\r\n%b\r\n" % (len(event), event)
    whole = json.dumps({"choices": [{"index": 0, "message": {"content": "fox " * 100}}]}).encode()
    ok = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n%b\r\n\r\n"

    def serve(sock: socket.socket) -> None:
        with sock, sock.makefile("rb") as reader:
            while reader.readline():
                length = 0
                while (line := reader.readline()).strip():
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                if b'"stream": true' not in reader.read(length):
                    size = b"Content-Length: %d" % len(whole)
                    sock.sendall(ok % (b"application/json", size) + whole)
                    continue
                sock.sendall(ok % (b"text/event-stream", b"Transfer-Encoding: chunked"))
                for _ in range(PIECES):
                    sock.sendall(piece)
                sock.sendall(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    def accept() -> None:
        while True:
            try:
                sock, _ = server.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(sock,), daemon=True).start()

    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
    finally:
        server.close()


WORK = {
    "turns": ("small turns", "turns"),
    "small": ("updates of 64 B", "updates"),
    "large": ("tool updates of 4 KiB", "updates"),
    "relay": ("relay, small turns", "turns"),
    "bursts": ("relay, bursts of 2 MiB of 64 B", "MiB"),
    "bursts4k": ("relay, bursts of 4 MiB of 4 KiB", "MiB"),
    "flood": ("relay, 4 KiB without a pause", "MiB"),
    "model": ("model proxy, whole answers", "exchanges"),
    "stream": (f"model proxy, streams of {PIECES} pieces", "exchanges"),
    "node": ("relay, a node agent's small turns", "turns"),
    "node64": ("relay, a node agent's updates of 64 B", "updates"),
    "node4k": ("relay, a node agent's updates of 4 KiB", "updates"),
}
BY_CLOCK = ("node", "node64", "node4k")


def subject(name: str, stack: ExitStack, record: list[str], upstream: str) -> Subject:
    match name:
        case "turns":
            return Turns(stack, record, "hi", 50, 50)
        case "small":
            return Turns(stack, record, "flood message 10000 64", 1, 10_000)
        case "large":
            return Turns(stack, record, "flood tool 1000 4096", 1, 1000)
        case "relay":
            return Relayed(stack, record, "hi", times=100)
        case "bursts":
            return Relayed(stack, record, "flood message 10000 64")
        case "bursts4k" | "flood":
            return Relayed(stack, record, "flood tool 1000 4096")
        case "node":
            return Relayed(stack, record, "hi", times=200, agent=NODE)
        case "node64":
            return Relayed(stack, record, "flood 2000 64", units=2000, agent=NODE)
        case "node4k":
            return Relayed(stack, record, "flood 1000 4096", units=1000, agent=NODE)
        case _:
            return Exchanges(stack, record, upstream, stream=name == "stream")


class Figures:
    """What one kind of work took, each round of each pair of processes."""

    def __init__(self) -> None:
        self.plain: list[float] = []
        self.recorded: list[float] = []
        """Seconds a unit: of CPU time, or by the clock."""
        self.left: list[float] = []
        """What was left of it, of each pair of rounds."""
        self.clock: list[float] = []
        """Throughput that was left by the clock, of each pair of rounds."""
        self.scribe = 0.0
        self.worker = 0.0
        """CPU seconds, while recording."""

    def measure(self, name: str, rounds: int, upstream: str) -> None:
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            plain = subject(name, stack, [], upstream)
            recorded = subject(name, stack, ["--record", f"{folder}/"], upstream)
            pid = scribe(recorded.pid)
            assert pid is not None, "nothing is recorded"
            before = cpu(pid)
            took: dict[Subject, list[tuple[float, float]]] = {plain: [], recorded: []}
            for number in range(rounds):
                # Who is first changes, so that neither always has the warmer machine.
                for one in (plain, recorded) if number % 2 else (recorded, plain):
                    time.sleep(_PAUSE if name in ("bursts", "bursts4k") else 0)
                    used, start = cpu(one.pid), time.monotonic()
                    units = one.work()
                    used, clock = cpu(one.pid) - used, time.monotonic() - start
                    took[one].append((used / units, clock / units))
                    self.worker += used if one is recorded else 0
            time.sleep(0.1)
            self.scribe += cpu(pid) - before
        counted = 1 if name in BY_CLOCK else 0
        self.plain += [times[counted] for times in took[plain]]
        self.recorded += [times[counted] for times in took[recorded]]
        pairs = list(zip(took[plain], took[recorded], strict=True))
        self.left += [a[counted] / b[counted] for a, b in pairs]
        self.clock += [a[1] / b[1] for a, b in pairs]

    def line(self, scale: float) -> tuple[str, float]:
        """The figures as they are shown, and the ratio."""
        plain, recorded = (scale / statistics.median(t) for t in (self.plain, self.recorded))
        ratio = statistics.median(self.left)
        share = self.scribe / self.worker
        words = f"{plain:>10,.0f}{recorded:>10,.0f}{ratio:>8.2f}"
        return f"{words}{statistics.median(self.clock):>8.2f}{share:>8.0%}", ratio


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.recording", description=__doc__)
    parser.add_argument("--pairs", type=int, default=20, help="of processes")
    parser.add_argument("--rounds", type=int, default=5, help="a pair")
    parser.add_argument("--only", default=",".join(WORK), help=", ".join(WORK))
    options = parser.parse_args()
    names = options.only.split(",")
    if not SDK.is_dir() and any(name in BY_CLOCK for name in names):
        parser.error("the node agent's SDK is not there: tests/peers/install.py node-clients")
    kept = True
    heads = ("plain", "recorded", "ratio", "clock", "scribe")
    print(f"{'work, a second of CPU or by the clock':<44}{heads[0]:>10}{heads[1]:>10}", end="")
    print("".join(f"{head:>8}" for head in heads[2:]))
    with model() as upstream:
        for name in names:
            found, (words, unit) = Figures(), WORK[name]
            for _ in range(options.pairs):
                found.measure(name, options.rounds, upstream)
            line, ratio = found.line(1 / (1 << 20) if unit == "MiB" else 1)
            kept = kept and ratio >= BAR
            missed = "" if ratio >= BAR else f"   MISSED ({BAR})"
            print(f"{words + ', ' + unit:<44}{line}{missed}", flush=True)
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    return 0 if kept else 3


if __name__ == "__main__":
    sys.exit(main())
