"""`acp-mcp-bridge [stream]`: the daemon on stdio.

Rule: this is the cold start of every rollout. The guardian is forked before anyio exists, and
argparse is only here as a type. Called by `bridge.__main__` (without arguments) and the frame.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    from bridge.cli import options

    options.add_daemon_options(parser)


def run(options: "argparse.Namespace") -> int:
    return _run(vars(options))


def run_plainly() -> int:
    """With no arguments: what is set, is set in the environment."""
    return _run({})


def _run(options: "Mapping[str, Any]") -> int:
    from bridge.io.guardian import Guardian

    with Guardian.start() as guardian:
        from bridge import app, config
        from bridge.errors import UsageError

        try:
            return app.run_stream(config.load(options, os.environ), guardian)
        except UsageError as error:
            print(f"acp-mcp-bridge: {error}", file=sys.stderr)
            return 2
