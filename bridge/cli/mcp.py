"""`acp-mcp-bridge mcp`: the MCP proxy alone, over HTTP or on stdio."""

import argparse
import os
from pathlib import Path

from bridge.cli.options import (
    add_listen_option,
    add_log_option,
    add_loop_option,
    add_remote_option,
    address,
)
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
    add_listen_option(way)
    way.add_argument(
        "--stdio",
        action="store_true",
        help="speak MCP on stdin and stdout instead; ends when its input does",
    )
    add_remote_option(parser)
    parser.add_argument(
        "--short-names",
        action="store_true",
        help="shorten names over 64 characters or with others than A-Z a-z 0-9 _ -",
    )
    parser.add_argument(
        "--events",
        action="store_true",
        help="write each attempt to stderr as a line of JSON",
    )
    add_loop_option(parser)
    add_log_option(parser)


def run(options: argparse.Namespace) -> int:
    """Serves until it is ended; gives the exit code. Raises UsageError."""
    host, port = address(options.listen)
    # Before anything else: it is forked from this process, and wants it small and single-threaded.
    with Guardian.start() as guardian:
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
