"""`python -m bench.model_proxy [--rounds N]`: what the model proxy adds to an exchange.

One canned model server in a process of its own, and clients on raw sockets: directly, through
`acp-mcp-bridge model`, and through a plain proxy on aiohttp, if `tests/peers/install.py
verifiers-0.2` has installed that. The rounds alternate, so that what else the machine does falls on
all alike: what is added is the median of the rounds' differences, other figures their median.

Every answer is checked, and the requests are counted at both ends: a byte lost or changed ends the
run with exit code 1. The code is 3 if a bar is missed; bars are ratios, to direct and to aiohttp.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import urllib.request
import zlib
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

from bench.bars import verdict
from bench.model_client import Way, chat
from bench.model_server import whole
from bench.recording import BRIDGE, cpu

ROOT = Path(__file__).parents[1]
PEER = ROOT / ".peers/verifiers-0.2/bin/python"
DIRECT, OURS, AIOHTTP = "direct", "bridge", "aiohttp"
KIB, MIB = 1 << 10, 1 << 20
STREAMS = 4
"""A round."""
KINDS = {  # bytes of a request, exchanges a round, clients
    "1 KiB": (KIB, 200, 1),
    "1 KiB, 16 clients": (KIB, 2000, 16),
    "1 KiB, 64 clients": (KIB, 2000, 64),
    "100 KiB": (100 * KIB, 60, 1),
    "10 MiB": (10 * MIB, 5, 1),
    "10 MiB, mended": (10 * MIB, 5, 1),
}
FIRST, DELAY = "SSE, first event: p50, µs", "SSE, delay of an event: p50, µs"


class Figures:
    """Of each metric and way: a figure a round."""

    def __init__(self) -> None:
        self.all: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def middle(self, metric: str, way: str) -> float:
        return statistics.median(self.all[metric][way])

    def added(self, metric: str, way: str) -> float:
        """What a way adds to direct: the median of the rounds' differences."""
        found = self.all[metric]
        return statistics.median(a - b for a, b in zip(found[way], found[DIRECT], strict=True))

    def over(self, metric: str, way: str) -> float:
        """Ours over another way's: the median of the rounds' ratios."""
        found = self.all[metric]
        return statistics.median(a / b for a, b in zip(found[OURS], found[way], strict=True))

    def exchanges(self, kind: str, way: Way) -> None:
        size, count, clients = KINDS[kind]
        body = chat(size, null="mended" in kind)
        # Nobody mends what goes directly.
        mended = body.replace(b'"content":null', b'"content":""')
        arrives = body if way.name == DIRECT else mended
        expected = whole(len(arrives), zlib.crc32(arrives))
        used = cpu(way.pid)
        times, rate = way.exchanges(way.request(body), expected, count, clients)
        used = cpu(way.pid) - used
        scale, unit = (1e3, "ms") if size >= MIB else (1e6, "µs")
        taken = {f"{kind}: CPU, {unit}": used / count * scale}
        if size == KIB:
            taken[f"{kind}: requests/s"] = rate
        if clients == 1:
            # With more, a latency is the length of the queue.
            taken[f"{kind}: p50, {unit}"] = statistics.median(times) * scale
        if clients == 1 and size == KIB:
            taken[f"{kind}: p99, µs"] = statistics.quantiles(times, n=100)[98] * 1e6
        for metric, figure in taken.items():
            self.all[metric][way.name].append(figure)

    def streams(self, way: Way) -> None:
        firsts, delays = way.streams(way.request(chat(KIB), "stream"), STREAMS)
        self.all[FIRST][way.name].append(statistics.median(firsts) * 1e6)
        self.all[DELAY][way.name].append(statistics.median(delays) * 1e6)


def measure(ways: list[Way], rounds: int) -> Figures:
    """The first round warms up and is not counted; who is first changes."""
    figures = Figures()
    # What was mended changes how an allocator behaves from then on: it comes last.
    *early, mended = KINDS
    for kinds in ([*early, "SSE"], [mended]):
        for number in range(rounds + 1):
            found = figures if number else Figures()
            order = ways if number % 2 else ways[::-1]
            for kind in kinds:
                for way in order:
                    if kind == "SSE":
                        found.streams(way)
                    else:
                        found.exchanges(kind, way)
    return figures


def peak(pid: int) -> float:
    """The most memory that a process has had, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def show(figures: Figures, ways: list[Way]) -> None:
    heads = "".join(f"{way.name:>10}{'added':>10}" for way in ways[1:])
    print(f"{'':<34}{DIRECT:>10}{heads}")
    for metric in figures.all:
        line = f"{metric:<34}{shown(figures.middle(metric, DIRECT)):>10}"
        for way in ways[1:]:
            # CPU time is that of the process: the server's own says nothing of a proxy's.
            both = "p50" in metric or "p99" in metric
            added = shown(figures.added(metric, way.name)) if both else ""
            line += f"{shown(figures.middle(metric, way.name)):>10}{added:>10}"
        print(line)
    print(f"{'peak memory, MiB':<34}", end="")
    print("".join(f"{peak(way.pid):>10.1f}{'':>10}" for way in ways)[:-10])


def shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"


def judge(figures: Figures, ours: Way, peer: bool) -> bool:
    good = verdict("peak memory, MiB", peak(ours.pid), 128)
    for metric, bar in (
        ("1 KiB: p50, µs", 8),
        ("100 KiB: p50, µs", 10),
        ("10 MiB: p50, ms", 4),
        ("10 MiB, mended: p50, ms", 8),
        (FIRST, 6),
        (DELAY, 4),
    ):
        good &= verdict(f"{metric[:-4]} over direct's", figures.over(metric, DIRECT), bar)
    for way, bar in ((DIRECT, 0.2), (AIOHTTP, 2))[: 1 + peer]:
        for clients in (16, 64):
            metric = f"1 KiB, {clients} clients: requests/s"
            good &= verdict(f"{metric} over {way}'s", figures.over(metric, way), bar, least=True)
    if peer:
        cpu_over = figures.over("1 KiB: CPU, µs", AIOHTTP)
        good &= verdict("1 KiB: CPU over aiohttp's", cpu_over, 0.5)
        for metric, bar in (
            ("1 KiB: p50, µs", 0.5),
            ("10 MiB: p50, ms", 1.2),
            ("10 MiB, mended: p50, ms", 0.5),
        ):
            ratio = figures.added(metric, OURS) / figures.added(metric, AIOHTTP)
            good &= verdict(f"{metric[:-4]} added, over what aiohttp adds", ratio, bar)
    return good


@contextlib.contextmanager
def started(*command: str) -> Generator[tuple[str, int]]:
    """A process that prints its URL when it listens: that, and its pid."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            sys.exit(f"bench: {command[0]} has not started")
        yield json.loads(line)["url"], process.pid
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def count(url: str, ways: list[Way]) -> None:
    """Whether as many requests have arrived by each way as were made."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url) as answer:
        arrived = json.load(answer)
    made = {way.name: way.made for way in ways}
    if arrived != made:
        sys.exit(f"bench: of {made} requests {arrived} have arrived")
    print(f"{sum(made.values())} exchanges, none lost, every byte as it was sent")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.model_proxy", description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        server = started(sys.executable, "-m", "bench.model_server")
        url, pid = stack.enter_context(server)
        # The server counts the requests by the first part of their path.
        ours = started(BRIDGE, "model", "--upstream", f"{url}/{OURS}/v1")
        ways = [Way(DIRECT, f"{url}/{DIRECT}/v1", pid), Way(OURS, *stack.enter_context(ours))]
        if PEER.exists():
            peer = started(str(PEER), str(ROOT / "bench/aiohttp_proxy.py"), f"{url}/{AIOHTTP}/v1")
            ways.append(Way(AIOHTTP, *stack.enter_context(peer)))
        figures = measure(ways, options.rounds)
        show(figures, ways)
        count(url, ways)
        good = judge(figures, ways[1], PEER.exists())
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    return 0 if good else 3


if __name__ == "__main__":
    sys.exit(main())
