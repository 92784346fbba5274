"""Entry point: `acp-mcp-bridge` and `python -m bridge`.

Rule: nothing heavy before the guardian is forked, and nothing the daemon does not need on its
path: argparse and the other commands are loaded by `bridge.cli.frame` when there are arguments.
The process leaves without taking its interpreter down (decision 0046).
"""

import atexit
import os
import sys
from contextlib import suppress

from bridge.io.descriptors import fill_standard


def main() -> int:
    """Runs a command; gives its exit code (0 done, 1 failed, 2 usage, 130/143 by signal)."""
    if sys.getfilesystemencoding() != "utf-8":
        # Paths, arguments and environments are UTF-8 for us whatever the locale says.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", "-m", "bridge", *sys.argv[1:]])
    fill_standard()
    arguments = sys.argv[1:]
    if not arguments or arguments == ["stream"]:
        from bridge.cli import stream

        return stream.run_plainly()
    from bridge.cli import frame

    return frame.run(arguments)


def program() -> None:
    """`main` as a process, which ends at once: whoever started it may be waiting for that."""
    code = main()
    # What others registered (coverage tools, site hooks) still runs.
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    program()
