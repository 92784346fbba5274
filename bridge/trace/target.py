"""The file that `--record` names, opened so that no two recordings mix.

Owns: how a name becomes a file. Rules: mode 0600; an existing file is appended to; in a directory,
or where another process is recording to that file, the recording gets a file of its own. Called by
`bridge.trace.recorder`.
"""

import fcntl
import os
import time
from pathlib import Path

from bridge.errors import UsageError

SUFFIX = ".trace.ndjson"
# Not blocking: opening a named pipe that nobody reads would wait for ever.
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK


def open_target(path: str) -> tuple[str, int]:
    """The file's path and descriptor; raises UsageError."""
    if path.endswith("/") or os.path.isdir(path):
        path = os.path.join(path, f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}{SUFFIX}")
    try:
        fd = os.open(path, _FLAGS, 0o600)
        if _locked(fd):
            os.close(fd)
            path = _beside(path)
            fd = os.open(path, _FLAGS, 0o600)
            _locked(fd)
    except OSError as error:
        raise UsageError(f"--record {path}: {error.strerror}; {_advice(path)}") from None
    os.set_blocking(fd, True)
    return path, fd


def _locked(fd: int) -> bool:
    """Whether another process is recording to the file; if not, it is ours from now on."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        # Not every file can be locked (a pipe, some network file systems).
        return False
    return False


def _beside(path: str) -> str:
    """A name of our own: `run.trace.ndjson` becomes `run.PID.trace.ndjson`."""
    folder, name = os.path.split(path)
    stem, dot, rest = name.partition(".")
    return os.path.join(folder, f"{stem}.{os.getpid()}{dot}{rest}")


def _advice(path: str) -> str:
    if not Path(path).parent.is_dir():
        return f"make the directory {str(Path(path).parent)!r} first"
    return "give a file that can be written, or a directory"
