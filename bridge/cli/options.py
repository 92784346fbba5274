"""Options that several commands share."""

import argparse

from bridge.config import PREFIX


def add_record_options(parser: argparse.ArgumentParser) -> None:
    """`--record` and `--record-secrets`."""
    group = parser.add_argument_group("recording")
    group.add_argument(
        "--record",
        metavar="FILE",
        help="record everything that passes (a directory: to a new file in it)",
    )
    group.add_argument(
        "--record-secrets",
        action="store_true",
        default=None,
        help="leave keys, tokens and header values in the recording",
    )


def add_daemon_options(parser: argparse.ArgumentParser) -> None:
    """The daemon's options; each can also be set as a BRIDGE_* variable."""
    group = parser.add_argument_group(
        "daemon", f"each may also be set in the environment: --log-level as {PREFIX}LOG_LEVEL"
    )
    group.add_argument("--config", metavar="FILE", help="settings as JSON or TOML")
    group.add_argument(
        "--agent", metavar="NAME", help="the agent profile of sessions that name none"
    )
    group.add_argument(
        "--loop", choices=("auto", "asyncio", "uvloop", "trio"), help="event loop (auto)"
    )
    add_record_options(parser)
    group.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), help="stderr log (warning)"
    )
    proxies = parser.add_argument_group("proxies")
    for name, what in (("model", "model endpoint"), ("mcp", "MCP servers")):
        proxies.add_argument(
            f"--{name}-proxy",
            choices=("auto", "off"),
            help=f"put ours before the agent's {what} (auto)",
        )
    proxies.add_argument(
        "--intercept",
        metavar="URL",
        help="the interception server: replaced wherever it stands in what the agent is given",
    )
