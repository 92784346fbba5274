"""Options that several commands share, and how an address is written.

Rule: an option of the daemon's that is not given is None: the environment or a file may say it.
"""

import argparse
from typing import Any

from bridge.config import PREFIX, choices
from bridge.errors import UsageError

_LOOPS = choices("loop")
_LEVELS = choices("log_level")
_Group = Any  # a parser or a group of one: argparse has no public name for what both are


def add_loop_option(group: _Group, default: str | None = "auto") -> None:
    group.add_argument("--loop", choices=_LOOPS, default=default, help="event loop (auto)")


def add_log_option(group: _Group, default: str | None = "warning") -> None:
    group.add_argument(
        "--log-level", choices=_LEVELS, default=default, help="log on stderr (warning)"
    )


def add_listen_option(group: _Group) -> None:
    group.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default="127.0.0.1:0",
        help="where to listen (a free port of 127.0.0.1)",
    )


def add_remote_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="allow --listen off the loopback, and any Host header; whoever knows the URL can use "
        "it",
    )


def address(text: str) -> tuple[str, int]:
    """HOST:PORT taken apart; an IPv6 host is in brackets. Raises UsageError."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--listen {text}: write it as HOST:PORT, for example 127.0.0.1:8080")
    return host, int(port)


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
    group = _add_settings(parser)
    group.add_argument(
        "--agent", metavar="NAME", help="the agent profile of sessions that name none"
    )
    _add_proxies(parser, "auto", "")


def add_relay_options(parser: argparse.ArgumentParser) -> None:
    """Those of them that a relay has: it knows no sessions' agents, and changes what it is told to
    change on its command line alone."""
    _add_settings(parser)
    _add_proxies(parser, "off", ", whatever the environment says")


def _add_settings(parser: argparse.ArgumentParser) -> _Group:
    group = parser.add_argument_group(
        "settings",
        f"each may also be set in the environment (--log-level as {PREFIX}LOG_LEVEL), or in "
        "--config's file (as log_level)",
    )
    group.add_argument("--config", metavar="FILE", help="settings as JSON or TOML")
    add_loop_option(group, None)
    add_log_option(group, None)
    add_record_options(parser)
    return group


def _add_proxies(parser: argparse.ArgumentParser, default: str, condition: str) -> None:
    proxies = parser.add_argument_group("proxies")
    for name, what in (("model", "model endpoint"), ("mcp", "MCP servers")):
        proxies.add_argument(
            f"--{name}-proxy",
            choices=choices(f"{name}_proxy"),
            help=f"put ours before the agent's {what} ({default}{condition})",
        )
    proxies.add_argument(
        "--intercept",
        metavar="URL",
        help="the interception server: replaced wherever it stands in what the agent is given",
    )
