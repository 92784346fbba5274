"""`python -m bench [--full] [--only NAME,...]`: the daemon against the reference, side by side.

The rounds alternate between the two, so that what else the machine does falls on both alike. A
line shows both medians, the median of the paired ratios and the bar it must stay under; the exit
code is 3 if one does not. CPU time and ratios are what to trust on a shared machine.
`--full` adds what takes minutes on the reference: a flood of 100 000 updates, fifty daemons.
"""

import argparse
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

from bench.daemon import Daemon

ROOT = Path(__file__).parents[1]
REFERENCE, BRIDGE = "reference", "bridge"
# Ratios to the reference that must not be exceeded; other figures are shown for interest.
BARS = {
    "cold.total_ms": 0.35,
    "cold.cpu_ms": 0.32,
    "cold.peak_mib": 0.75,
    "cold.close_ms": 0.60,
    "warm.cpu_per_turn_us": 0.75,
    "warm.p50_us": 0.80,
    "ask.p50_us": 0.75,
    "flood.message_10000x64.cpu_s": 0.05,
    "flood.message_100000x64.cpu_s": 0.01,
    "flood.thought_10000x64.cpu_s": 0.15,
    "flood.tool_1000x4096.cpu_s": 0.50,
    "line.16MiB.cpu_s": 1.0,
    "packet.16MiB.cpu_s": 1.0,
    "fleet.50_ready_s": 0.32,
    "fleet.pss_each_mib": 0.70,
}
MIB = 1 << 20


def commands() -> dict[str, list[str]]:
    """How each of the two is started; both are exactly one process."""
    peers = ROOT / ".peers"
    [runner] = (peers / "verifiers-0.4").glob("lib/*/site-packages/verifiers/v1/acp/runner.py")
    return {
        REFERENCE: [str(peers / "reference/bin/python"), str(runner)],
        BRIDGE: [str(Path(sys.executable).with_name("acp-mcp-bridge")), "stream"],
    }


class Bench:
    """The figures of both, by metric, in the order of their rounds."""

    def __init__(self) -> None:
        self.commands = commands()
        self.figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def add(self, metric: str, subject: str, value: float) -> None:
        self.figures[metric][subject].append(value)

    def cold(self, rounds: int = 10) -> None:
        """From nothing to the first reply, and away again."""
        for _ in range(rounds):
            for subject, command in self.commands.items():
                daemon = Daemon(command)
                daemon.turn("hi")
                self.add("cold.total_ms", subject, (time.monotonic() - daemon.begun) * 1e3)
                self.add("cold.cpu_ms", subject, daemon.cpu() * 1e3)
                self.add("cold.peak_mib", subject, daemon.memory("VmHWM"))
                self.add("cold.close_ms", subject, daemon.close() * 1e3)

    def warm(self, blocks: int = 12, turns: int = 40) -> None:
        """Small turns on a session that lives."""
        daemons = {subject: Daemon(command) for subject, command in self.commands.items()}
        for daemon in daemons.values():
            for _ in range(20):
                daemon.turn("hi")
        for _ in range(blocks):
            for subject, daemon in daemons.items():
                before, times = daemon.cpu(), []
                for _ in range(turns):
                    data, start = daemon.prompt("hi"), time.perf_counter()
                    daemon.exchange(data)
                    times.append(time.perf_counter() - start)
                self.add("warm.p50_us", subject, statistics.median(times) * 1e6)
                self.add("warm.cpu_per_turn_us", subject, (daemon.cpu() - before) / turns * 1e6)
                asked = [float(word) for word in daemon.turn("ask 60").split()]
                self.add("ask.p50_us", subject, statistics.median(asked) * 1e6)
        for daemon in daemons.values():
            daemon.close()

    def heavy(self, metric: str, text: str, rounds: int = 3) -> None:
        """One demanding turn, each on a daemon of its own."""
        for _ in range(rounds):
            for subject, command in self.commands.items():
                daemon = Daemon(command)
                daemon.turn("hi")
                data, before, start = daemon.prompt(text), daemon.cpu(), time.monotonic()
                daemon.exchange(data)
                self.add(f"{metric}.s", subject, time.monotonic() - start)
                self.add(f"{metric}.cpu_s", subject, daemon.cpu() - before)
                self.add(f"{metric}.peak_mib", subject, daemon.memory("VmHWM"))
                daemon.close()

    def flood(self) -> None:
        self.heavy("flood.message_10000x64", "flood message 10000 64")
        self.heavy("flood.thought_10000x64", "flood thought 10000 64")
        self.heavy("flood.tool_1000x4096", "flood tool 1000 4096")

    def long(self) -> None:
        self.heavy("line.16MiB", f"line {16 * MIB}")
        self.heavy("packet.16MiB", "x" * 16 * MIB)

    def flood100k(self) -> None:
        self.heavy("flood.message_100000x64", "flood message 100000 64", rounds=1)

    def fleet(self, size: int = 50) -> None:
        """Many daemons at once, each with one turn behind it."""
        for subject, command in self.commands.items():
            start = time.monotonic()
            daemons = [Daemon(command) for _ in range(size)]
            for daemon in daemons:
                daemon.turn("hi")
            self.add(f"fleet.{size}_ready_s", subject, time.monotonic() - start)
            each = [daemon.memory("Pss") for daemon in daemons]
            self.add("fleet.pss_each_mib", subject, statistics.median(each))
            for daemon in daemons:
                daemon.close()

    def ratio(self, metric: str) -> float:
        figures = self.figures[metric]
        pairs = zip(figures[REFERENCE], figures[BRIDGE], strict=True)
        return statistics.median(new / old for old, new in pairs)

    def show(self) -> bool:
        """Prints the table; whether every bar is kept."""
        kept = True
        print(f"{'metric':<34}{REFERENCE:>12}{BRIDGE:>12}{'ratio':>9}{'bar':>7}")
        for metric, figures in self.figures.items():
            ratio, bar = self.ratio(metric), BARS.get(metric)
            over = bar is not None and ratio > bar
            kept = kept and not over
            middles = "".join(f"{statistics.median(f):>12.4g}" for f in figures.values())
            limit = f"{bar:>7}" if bar is not None else f"{'':>7}"
            print(f"{metric:<34}{middles}{ratio:>9.3f}{limit}{'  OVER' if over else ''}")
        return kept


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", help="cold, warm, flood, long, flood100k, fleet")
    arguments = parser.parse_args()
    names = ["cold", "warm", "flood", "long"] + ["flood100k", "fleet"] * arguments.full
    bench = Bench()
    for name in arguments.only.split(",") if arguments.only else names:
        getattr(bench, name)()
    sys.exit(0 if bench.show() else 3)


if __name__ == "__main__":
    main()
