"""An agent of bytes for the relay's tests: writes what it is told, keeps what it reads.

Stdlib only: `python -I -S byte_agent.py FOLDER STEP...`. What comes on stdin goes to FOLDER/heard,
until the end of stdin or the process. Each STEP in turn, while stdin is read beside:

    send FILE [SIZE [SECONDS]]   FILE's bytes to stdout, SIZE at a time, with a pause after each
    err FILE            FILE's bytes to stderr
    flood SIZE COUNT    COUNT times SIZE bytes to stdout; FOLDER/written tells how far it came
    until SIZE          waits until so many bytes were heard
    eof                 waits for the end of stdin
    trap SIGNAL CODE    exits with CODE on SIGNAL (and writes FOLDER/ready)
    grandchild          starts a deaf one in a session of its own; FOLDER/pid has its number
    deafen              ignores SIGTERM; close stdin|stdout: closes it; hang: sleeps for ever
    exit CODE, kill SIGNAL
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

folder = Path(sys.argv[1])
heard = 0
ended = threading.Event()
grew = threading.Condition()


def hear() -> None:
    global heard
    with (folder / "heard").open("wb", buffering=0) as file:
        try:
            while data := os.read(0, 1 << 18):
                file.write(data)
                with grew:
                    heard += len(data)
                    grew.notify_all()
        except OSError:
            return
        finally:
            ended.set()
            with grew:
                grew.notify_all()


def write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def send(name: str, size: str = "0", pause: str = "0") -> None:
    data = (folder / name).read_bytes()
    step = int(size) or len(data)
    for at in range(0, len(data), step):
        write(1, data[at : at + step])
        time.sleep(float(pause))


def flood(size: str, count: str) -> None:
    for number in range(int(count)):
        write(1, b"x" * int(size))
        (folder / "written").write_text(str((number + 1) * int(size)))


def until(size: str) -> None:
    with grew:
        grew.wait_for(lambda: heard >= int(size) or ended.is_set())


def trap(name: str, code: str) -> None:
    signal.signal(getattr(signal, name), lambda *_: os._exit(int(code)))
    (folder / "ready").write_text("yes")


def grandchild() -> None:
    script = "trap '' TERM HUP INT; sleep 600"
    child = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    (folder / "pid").write_text(str(child.pid))


def hang() -> None:
    # Not pause(): the signal may be taken by the other thread.
    while True:
        time.sleep(0.02)


def close(name: str) -> None:
    os.close({"stdin": 0, "stdout": 1}[name])


def main() -> None:
    steps = {
        "send": send,
        "err": lambda name: write(2, (folder / name).read_bytes()),
        "flood": flood,
        "until": until,
        "eof": ended.wait,
        "trap": trap,
        "grandchild": grandchild,
        "deafen": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
        "close": close,
        "hang": hang,
        "exit": lambda code: os._exit(int(code)),
        "kill": lambda name: os.kill(os.getpid(), getattr(signal, name)),
    }
    if "close stdin" not in sys.argv:
        threading.Thread(target=hear, daemon=True).start()
    for step in sys.argv[2:]:
        name, *arguments = step.split()
        steps[name](*arguments)


main()
