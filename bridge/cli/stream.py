"""`acp-mcp-bridge [stream]`: the daemon on stdio.

Rule: this is the cold start of every rollout, and its end. The guardian is forked before anyio
exists, and argparse is only here as a type; the process leaves without taking its interpreter down
(decision 0046). Called by `bridge.__main__` (without arguments) and the frame.
"""

import atexit
import os
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any, NoReturn

HELP = "serve a harness on stdin and stdout (the default command)"


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    from bridge.cli import options

    options.add_daemon_options(parser)


def run(options: "argparse.Namespace") -> "NoReturn":
    _leave(_run(vars(options)))


def run_plainly() -> "NoReturn":
    """With no arguments: what is set, is set in the environment."""
    _leave(_run({}))


def _leave(code: int) -> "NoReturn":
    """Ends the process at once: everything of ours is closed, and the host waits."""
    # What others registered (coverage tools, site hooks) still runs.
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _run(options: "Mapping[str, Any]") -> int:
    from bridge.io.guardian import Guardian

    guardian = Guardian.start()
    from bridge import app, config
    from bridge.errors import UsageError

    try:
        code = app.run_stream(config.load(options, os.environ), guardian)
    except UsageError as error:
        print(f"acp-mcp-bridge: {error}", file=sys.stderr)
        code = 2
    finally:
        guardian.close()
    return code
