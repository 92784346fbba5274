"""A byte recorder between a client and an agent, apart from everything that is tested.

Stdlib only: `python -I -S wiretap.py FILES -- CMD...` starts CMD with pipes, passes both ways what
comes, and keeps it in FILES.in (to CMD) and FILES.out (from CMD). Its exit code is CMD's.
"""

import os
import subprocess
import sys
import threading


def copy(source: int, target: int, path: str) -> None:
    with open(path, "wb", buffering=0) as file:
        while data := os.read(source, 1 << 16):
            file.write(data)
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(target, view) :]
            except BrokenPipeError:
                break
    os.close(target)


def main() -> int:
    files, command = sys.argv[1], sys.argv[3:]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    down = (0, os.dup(child.stdin.fileno()), f"{files}.in")
    child.stdin.close()
    threading.Thread(target=copy, args=down, daemon=True).start()
    copy(child.stdout.fileno(), os.dup(1), f"{files}.out")
    return child.wait()


sys.exit(main())
