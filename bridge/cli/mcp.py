"""`acp-mcp-bridge mcp`: the MCP proxy alone, over HTTP or on stdio."""

import argparse
import os
from pathlib import Path

from bridge.errors import UsageError
from bridge.io.guardian import Guardian


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Puts MCP servers behind one endpoint that gives every call attempts of its own. Prints "
        'one line {"url": ..., "servers": {NAME: url}} when ready: the url has all tools as '
        "SERVER_TOOL, the others one server's each. SIGTERM or SIGINT ends it."
    )
    parser.add_argument(
        "--servers",
        metavar="FILE",
        type=Path,
        required=True,
        help='the usual {"mcpServers": {...}} file; ${VAR} is filled in from the environment',
    )
    way = parser.add_mutually_exclusive_group()
    way.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default="127.0.0.1:0",
        help="where to listen (default: a free port of 127.0.0.1)",
    )
    way.add_argument(
        "--stdio",
        action="store_true",
        help="speak MCP on stdin and stdout instead; ends when its input does",
    )
    parser.add_argument(
        "--short-names",
        action="store_true",
        help="shorten names over 64 characters or with others than A-Z a-z 0-9 _ -",
    )
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="allow --listen off the loopback; whoever knows the URL can use it",
    )
    parser.add_argument(
        "--events",
        action="store_true",
        help="write each attempt to stderr as a line of JSON",
    )
    parser.add_argument(
        "--loop",
        choices=["auto", "asyncio", "uvloop", "trio"],
        default="auto",
        help="event loop (default: auto)",
    )
    parser.add_argument(
        "--log-level",
        choices=["debug", "info", "warning", "error"],
        default="warning",
        help="log on stderr (default: warning)",
    )


def run(options: argparse.Namespace) -> int:
    """Serves until it is ended; gives the exit code. Raises UsageError."""
    host, port = address(options.listen)
    # Before anything else: it is forked from this process, and wants it small and single-threaded.
    guardian = Guardian.start()
    try:
        # Imported here: the command line is also parsed to print help.
        import anyio

        from bridge import log
        from bridge.config import backend
        from bridge.mcp import settings
        from bridge.mcp.alone import Options, serve

        log.configure(options.log_level)
        try:
            data = options.servers.read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read {options.servers}: {error.strerror}") from None
        loaded = settings.from_file(data, os.environ, where=str(options.servers))
        for warning in loaded.warnings:
            log.log.warning("%s", warning)
        how = Options(
            host,
            port,
            stdio=options.stdio,
            short_names=options.short_names,
            allow_remote=options.allow_remote,
            events=options.events,
        )
        return anyio.run(serve, loaded.upstreams, how, guardian.family, **backend(options.loop))
    finally:
        guardian.close()


def address(text: str) -> tuple[str, int]:
    """HOST:PORT taken apart; an IPv6 host is in brackets. Raises UsageError."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--listen {text}: write it as HOST:PORT, for example 127.0.0.1:8080")
    return host, int(port)
