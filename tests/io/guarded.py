"""A small daemon for test_guardian: `python -m tests.io.guarded LOOP SCRIPT...`

Starts a guardian, then each shell script as a child; says `guardian PID`, `child PID FIRST_LINE`
for each, and `ready`. Then a line on stdin is an order: `chores`, `spare` (forks a helper the
family spares; says its pid), `abandon` (exits without stopping anybody). End of input: an orderly
end. With `churn` for the only script it starts and stops children without a pause.
"""

import sys

from bridge.io.guardian import Guardian

if __name__ == "__main__":
    guardian = Guardian.start()

import json
import os
import signal
from contextlib import AsyncExitStack

import anyio

from bridge.io.pipes import FdReader, reopen
from bridge.io.process import Family, spawn


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def helper() -> int:
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.closerange(0, 256)
        signal.pause()
    return pid


async def churn(family: Family) -> None:
    say("ready")
    while True:
        async with spawn(["sh", "-c", "setsid -f sleep 1000; cat"], env=env(), family=family):
            say("one more")


def env() -> dict[str, str]:
    return dict(os.environ)


async def main(family: Family, scripts: list[str]) -> str:
    if scripts == ["churn"]:
        await churn(family)
    async with AsyncExitStack() as stack:
        for script in scripts:
            child = await stack.enter_async_context(
                spawn(["sh", "-c", script], env=env(), family=family)
            )
            if script.startswith("read"):
                # It waits until the daemon has become the one who adopts its orphans.
                child.stdin.post(b"go\n")
            line = await child.stdout.receive()
            say("child", child.pid, line.decode().strip())
        say("ready")
        orders = FdReader(reopen(0, os.O_RDONLY))
        while order := (await orders.receive()).decode().strip():
            if order == "chores":
                family.chores()
                say("done")
            elif order == "spare":
                pid = helper()
                family.spare(pid)
                say(pid)
            else:
                guardian.close()
                os._exit(0)
    return "ended"


if __name__ == "__main__":
    backend, options = json.loads(sys.argv[1])
    say("guardian", guardian.pid)
    anyio.run(main, guardian.family, sys.argv[2:], backend=backend, backend_options=options)
    guardian.close()
