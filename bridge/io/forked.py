"""What a forked helper process does first: it leaves everything of its parent's behind.

Owns: nothing that lasts. Rule: a helper holds no pipe of the host's or an agent's, since someone
waits for their end; and no signal meant for the bridge's group reaches it. Called by the guardian
and by the scribe, in the child, before anything else.
"""

import os
import signal


def keep_only(*fds: int, name: bytes) -> None:
    """Becomes the leader of a session of its own, deaf to every signal but KILL, in `/`, with the
    descriptors `fds` alone and /dev/null in place of stdio. `name`: what ps calls it (Linux)."""
    os.setsid()
    for sig in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        try:
            signal.signal(sig, signal.SIG_IGN)
        except (OSError, ValueError):
            continue
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.chdir("/")
    _close_all_but(frozenset(fds))
    _call(name)


def _close_all_but(kept: frozenset[int]) -> None:
    """Closes what was inherited (the host waits for the end of our stdout)."""
    try:
        fds = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        fds = list(range(256))
    for fd in fds:
        if fd not in kept:
            try:
                os.close(fd)
            except OSError:
                continue
    while True:
        fd = os.open("/dev/null", os.O_RDWR)
        if fd > 2:
            os.close(fd)
            return


def _call(name: bytes) -> None:
    try:
        fd = os.open("/proc/self/comm", os.O_WRONLY)
    except OSError:
        return
    os.write(fd, name)
    os.close(fd)
