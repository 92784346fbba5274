"""A daemon that was started with closed descriptors: it ends or serves, and never crashes."""

import itertools
import subprocess
import sys

import pytest

from tests.peers.host import DAEMON

CLOSINGS = ["<&-", ">&-", "2>&-"]
PROGRAM = """
import os
{close}
from bridge.io.descriptors import fill_standard
fill_standard()
fill_standard()
taken = os.open("/dev/null", os.O_RDONLY)
for fd in (0, 1, 2):
    os.fstat(fd)
assert taken > 2, taken
if {stdin_closed}:
    assert os.read(0, 1) == b""
os._exit(7)
"""


@pytest.mark.parametrize("closed", [[], [0], [1], [2], [0, 1], [0, 1, 2]], ids=str)
def test_what_is_closed_is_filled_and_what_is_open_is_left(closed: list[int]) -> None:
    program = PROGRAM.format(
        close="\n".join(f"os.close({fd})" for fd in closed), stdin_closed=0 in closed
    )
    done = subprocess.run([sys.executable, "-c", program], input=b"kept", check=False, timeout=30)
    assert done.returncode == 7


@pytest.mark.parametrize(
    "closings",
    [c for count in (1, 2, 3) for c in itertools.combinations(CLOSINGS, count)],
    ids="".join,
)
def test_a_daemon_without_some_of_its_descriptors_ends_in_order(closings: tuple[str, ...]) -> None:
    script = f"exec {DAEMON[0]} stream {' '.join(closings)}"
    done = subprocess.run(
        ["sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
