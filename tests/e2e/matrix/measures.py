"""What is measured: start, memory; and whether the agent needs more than loopback."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from statistics import median

from bridge.trace.reader import Event, read
from tests.e2e.matrix.desk import ECHO, Desk, NotRun
from tests.e2e.matrix.scenario import scenario

ROOT = Path(__file__).parents[3]
STARTS = 3


@scenario("Start: process to initialize, then session/new", tells=True)
def start(desk: Desk) -> str:
    runs = []
    for number in range(STARTS):
        trace = desk.place / f"start-{number}.ndjson"
        desk.arguments = ["--record", str(trace)]
        desk.again()
        desk.open()
        desk.end()
        runs.append(_start(trace))
    first, second = (median(run[place] for run in runs) for place in (0, 1))
    return f"{first:.1f} s, {second:.1f} s"


def _start(trace: Path) -> tuple[float, float]:
    """Seconds to the answer to initialize, and from there to that to session/new."""
    events = [item for item in read(str(trace)) if isinstance(item, Event)]
    began = next(e.t for e in events if e.ch == "process" or e.kind == "start")
    sent: dict[object, str] = {}
    times: dict[str, float] = {}
    for event in events:
        if event.ch != "acp" or not event.is_json:
            continue
        message = json.loads(event.content or b"null")
        if "method" in message:
            sent[message.get("id")] = message["method"]
        elif (method := sent.get(message.get("id"))) is not None:
            times[method] = event.t
    ready = times["initialize"]
    return ready - began, times["session/new"] - ready


@scenario("Memory (PSS): after session/new, at most", tells=True)
def memory(desk: Desk) -> str:
    desk.open()
    idle = _pss(desk)
    done, peaks = threading.Event(), [idle]

    def watch() -> None:
        while not done.wait(0.1):
            peaks.append(_pss(desk))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        desk.says("hello")
        desk.turn(ECHO)
    finally:
        done.set()
        watcher.join()
    return f"{idle} MiB, {max(peaks)} MiB"


def _pss(desk: Desk) -> int:
    """Of all the agent's processes, in MiB; what ends while it is looked at has none."""
    total = 0
    for pid in desk.children():
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total >> 10


@scenario("Offline: loopback alone, DNS refused", tells=True)
def offline(desk: Desk) -> str:
    from tests.e2e.matrix.offline import before

    if subprocess.run([*before(), "true"], capture_output=True, check=False).returncode:
        raise NotRun("this machine allows no network namespace")
    place = desk.place / "offline"
    place.mkdir()
    command = [sys.executable, "-m", "tests.e2e.matrix.offline", desk.agent.name, str(place)]
    done = subprocess.run(
        [*before(), *command], capture_output=True, text=True, cwd=ROOT, check=False, timeout=300
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-500:]}"
    said = json.loads(done.stdout)
    for name, cell in said["cells"].items():
        assert cell["verdict"] == "works", f"{name}: {cell['note']}"
    hosts = [
        "npm's registry" if name.startswith("registry.") else name for name in said["looked_for"]
    ]
    return f"works; looks for {', '.join(hosts)}" if hosts else "works"
