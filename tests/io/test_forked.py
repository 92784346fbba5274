"""A forked helper process holds nothing of its parent's: pipes, group, signals, directory."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.peers.processes import wait_until

PARENT = """
import json, os, signal, sys
from bridge.io.forked import keep_only

kept, told = os.pipe()
stray = os.open(os.devnull, os.O_RDONLY)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
if os.fork() == 0:
    keep_only(kept, told, name=b"test-helper")
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGUSR1)
    report = {
        "fds": {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                if os.path.exists(f"/proc/self/fd/{fd}")},
        "kept": [kept, told],
        "leads": os.getsid(0) == os.getpgid(0) == os.getpid(),
        "cwd": os.getcwd(),
        "name": open("/proc/self/comm").read().strip(),
        "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    }
    with open(sys.argv[1] + ".new", "w") as file:
        json.dump(report, file)
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    os.read(kept, 1)
    os._exit(0)
print(os.getpid())
sys.stdin.read()
os.write(told, b"x")
os.wait()
"""


def test_a_helper_keeps_what_it_is_told_and_nothing_else(tmp_path: Path) -> None:
    place = tmp_path / "report.json"
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
    ) as parent:
        assert wait_until(place.exists)
        report = json.loads(place.read_text())
        # It lives on, though SIGTERM and SIGUSR1 were sent.
        assert parent.stdin is not None
        assert parent.poll() is None
        parent.stdin.close()
        assert parent.wait(20) == 0
    links = {int(fd): link for fd, link in report["fds"].items()}
    assert {links.pop(fd) for fd in (0, 1, 2)} == {os.devnull}
    assert set(report["kept"]) <= set(links)
    assert all(links[fd].startswith("pipe:") for fd in report["kept"])
    others = {fd: link for fd, link in links.items() if fd not in report["kept"]}
    assert not [link for link in others.values() if "pipe:" in link or link == os.devnull]
    assert (report["leads"], report["cwd"], report["blocked"]) == (True, "/", 0)
    assert report["name"] == "test-helper"
