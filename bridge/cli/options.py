"""Options that several commands share."""

import argparse

from bridge.config import PREFIX


def add_daemon_options(parser: argparse.ArgumentParser) -> None:
    """The daemon's options; each can also be set as a BRIDGE_* variable."""
    group = parser.add_argument_group(
        "daemon", f"each may also be set in the environment: --log-level as {PREFIX}LOG_LEVEL"
    )
    group.add_argument("--config", metavar="FILE", help="settings as JSON or TOML")
    group.add_argument(
        "--loop", choices=("auto", "asyncio", "uvloop", "trio"), help="event loop (auto)"
    )
    group.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), help="stderr log (warning)"
    )
