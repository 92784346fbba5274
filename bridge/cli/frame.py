"""The argparse frame around the commands: one line a command, its module imported when called.

Owns: `--help`, `--version`, exit codes and the one-line errors. Called by `bridge.__main__`.
"""

import argparse
import importlib
import os
import sys

from bridge import __version__
from bridge.cli.parser import Parser
from bridge.errors import BridgeError, UsageError
from bridge.log import debugging

COMMANDS = {
    "stream": "serve a harness on stdin and stdout (the default command)",
    "once": "run one prompt from a config file and print the reply",
    "trace": "look at recordings: show, follow, count, check, export, replay",
    "acp": "stand between an ACP client and its agent: a relay that records",
    "probe": "an agent's handshake: versions, capabilities, modes, authentication, times",
    "doctor": "what is missing on this machine, and the command that mends it",
    "agents": "node agents: list, show, install, run and remove them, in pinned versions",
    "demo": "the whole main job on loopback, for a stranger to watch",
    "agent": "the embedded agent: ACP on stdio over one chat model, with MCP and local tools",
    "model": "the model proxy alone: any agent, any model server",
    "mcp": "the MCP proxy alone: servers of a file behind one endpoint, HTTP or stdio",
}
"""Each is a module of bridge.cli with `add_arguments(parser)` and `run(options) -> exit code`."""

_EPILOG = """exit codes: 0 done, 1 the work failed, 2 usage, 3 a check found faults,
130/143 after SIGINT/SIGTERM"""


def run(arguments: list[str]) -> int:
    """Runs the command that `arguments` name; gives its exit code."""
    name = next((item for item in arguments if not item.startswith("-")), None)
    if arguments[0].startswith("-") and arguments[0] not in ("-h", "--help", "--version"):
        # Options without a command are the daemon's.
        name, arguments = "stream", ["stream", *arguments]
    parser = Parser(
        prog="acp-mcp-bridge",
        description="The daemon between a harness and a coding agent (ACP), with proxies for its "
        "MCP and model traffic. Without a command it serves a harness on stdio.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command, words in COMMANDS.items():
        child = commands.add_parser(command, help=words, description=words)
        if command == name:
            module = importlib.import_module(f"bridge.cli.{command}")
            module.add_arguments(child)
    options = parser.parse_args(arguments)
    module = importlib.import_module(f"bridge.cli.{options.command}")
    try:
        return module.run(options)
    except (UsageError, BridgeError) as error:
        print(f"acp-mcp-bridge: {error}", file=sys.stderr)
        if debugging():
            raise
        return 2 if isinstance(error, UsageError) else 1
    except BrokenPipeError:
        # `... | head`: the reader has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        return 130
