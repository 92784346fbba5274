"""Where agents that are named by a profile keep files of their own: a directory a session.

Owns: that it is the user's alone, and that it goes. Rules: what is made here is removed with its
session; what a daemon that was killed has left is removed by the next one that makes one. A
directory in use is known by its `.lock`, which the kernel lets go of when its daemon is dead,
however it died; it gets that name when it is locked, so none is ever seen unlocked before its time.
Used by `bridge.session.launcher`, where an agent is named.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread

from bridge.errors import BridgeError, invalid_request

_PREFIX = "acp-mcp-bridge-"
_LOCK = ".lock"


class State(NamedTuple):
    """A session's directory. `lock`: the descriptor that holds it; None for one that the host has
    given, which is the host's to remove."""

    path: Path
    lock: int | None = None

    async def remove(self) -> None:
        """Removes it, unless it is the host's."""
        if self.lock is not None:
            await anyio.to_thread.run_sync(_remove, self.path, self.lock)


async def make(given: str | None) -> State:
    """A directory that the host has `given`, or a new one; raises BridgeError."""
    try:
        return await anyio.to_thread.run_sync(_keep if given else _make, given or "")
    except OSError as error:
        if given:
            raise invalid_request(f"config.agent_options.state: {error}") from None
        raise BridgeError(f"no directory for the agent's state: {error}") from None


def _keep(given: str) -> State:
    path = Path(given).absolute()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return State(path)


def _make(_: str) -> State:
    folder = Path(tempfile.gettempdir())
    for left in folder.glob(f"{_PREFIX}*/{_LOCK}"):
        _sweep(left)
    path = Path(tempfile.mkdtemp(prefix=_PREFIX))
    unnamed = path / f"{_LOCK}.new"
    lock = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(path / _LOCK)
    return State(path, lock)


def _sweep(lock: Path) -> None:
    """Removes a directory whose daemon is dead; another's of this machine's users stays."""
    with suppress(OSError):
        descriptor = os.open(lock, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
        else:
            _remove(lock.parent, descriptor)


def _remove(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)
