"""The start of a child process: the pipes, the Popen, and words for why it failed.

Owns: nothing that lasts. Called by `bridge.io.process`, which takes over what is made here.
"""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from bridge.errors import BridgeError

_PIPE_SIZE = 256 * 1024


class Launched(NamedTuple):
    """A child just started, and our ends of its pipes; the receiver owns and closes them."""

    child: "subprocess.Popen[bytes]"
    stdin: int | None
    stdout: int
    stderr: int | None


def launch(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    *,
    stdin: bool = True,
    merge_stderr: bool = False,
) -> Launched:
    """Starts a command in a session of its own; raises BridgeError `spawn_failed`.

    Without `stdin` it reads from /dev/null; with `merge_stderr` its stderr is its stdout.
    """
    if not argv or not argv[0]:
        raise _spawn_failed("the agent's command is empty: give it as a list, program first")
    _mind_children()
    opened: list[int] = []

    def pipe() -> tuple[int, int]:
        both = os.pipe()
        opened.extend(both)
        return both

    ours: list[int] = []
    try:
        child_in, our_in = pipe() if stdin else (subprocess.DEVNULL, None)
        our_out, child_out = pipe()
        our_err, child_err = (None, subprocess.STDOUT) if merge_stderr else pipe()
        with suppress(OSError, AttributeError):
            fcntl.fcntl(our_out, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        # No preexec_fn: it would rule out vfork.
        child = subprocess.Popen(
            list(argv),
            stdin=child_in,
            stdout=child_out,
            stderr=child_err,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        ours = [fd for fd in (our_in, our_out, our_err) if fd is not None]
    except (OSError, ValueError, TypeError) as error:
        raise _spawn_failed(_why(error, argv, env, cwd)) from None
    else:
        return Launched(child, our_in, our_out, our_err)
    finally:
        for fd in opened:
            if fd not in ours:
                os.close(fd)


def _mind_children() -> None:
    """A host that ignores SIGCHLD hands that on, and the kernel then drops exit statuses."""
    if (
        signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
        and threading.current_thread() is threading.main_thread()
    ):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _spawn_failed(message: str) -> BridgeError:
    return BridgeError(message, code="spawn_failed", origin="agent")


def _unfit(argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> str:
    """Which of what a process is given no process can get; its own value is not repeated."""
    for name, value in env.items():
        if not name or "=" in name or not _is_plain(name):
            return f"the environment variable {name!r}: a name must be text without = and NUL"
        if not _is_plain(value):
            return f"the value of the environment variable {name!r} must be text without NUL"
    for number, argument in enumerate(argv):
        if not _is_plain(argument):
            return f"argument {number} of the command must be text without NUL"
    return f"the working directory {cwd!r} must be text without NUL"


def _is_plain(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except (UnicodeEncodeError, TypeError):
        return False


def _why(error: Exception, argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> str:
    """What kept a command from starting, and what to do about it."""
    command = argv[0]
    at = f"cannot start {command!r}: "
    if not isinstance(error, OSError):
        return f"{at}{_unfit(argv, env, cwd)}"
    if cwd is not None and os.path.exists(cwd) and not os.path.isdir(cwd):
        return f"{at}the working directory {cwd!r} is a file; give a directory as cwd"
    if cwd is not None and not os.path.isdir(cwd):
        return f"{at}the working directory {cwd!r} does not exist; create it or give another cwd"
    if cwd is not None and not os.access(cwd, os.X_OK):
        return f"{at}the working directory {cwd!r} may not be entered; check its permissions"
    path = os.path.join(cwd or "", command) if "/" in command else None
    if path is None and error.errno in (errno.ENOENT, errno.EACCES, errno.ENOTDIR):
        path = shutil.which(command, path=env.get("PATH"))
        if path is None:
            return (
                f"{at}no such command on PATH ({env.get('PATH', 'not set')}); "
                "install it, or give its full path"
            )
    match error.errno:
        case errno.ENOENT if path is not None and os.path.exists(path):
            return f"{at}the interpreter named in its first line (#!) does not exist; install it"
        case errno.ENOENT:
            return f"{at}there is no such file; check the path"
        case errno.EACCES if path is not None and os.path.isdir(path):
            return f"{at}it is a directory; name the program in it"
        case errno.EACCES:
            return f"{at}it is not executable; chmod +x it, or start it by its interpreter"
        case errno.ENOEXEC:
            return f"{at}it is no program for this machine, or a script without a #! line"
        case errno.E2BIG:
            return f"{at}its arguments and environment are too large together; pass less"
        case errno.EMFILE | errno.ENFILE:
            return f"{at}no file descriptor is free; raise the limit (ulimit -n)"
        case errno.EAGAIN | errno.ENOMEM:
            return f"{at}the system has no room for another process ({error.strerror})"
        case _:
            return f"{at}{error.strerror or error}"
