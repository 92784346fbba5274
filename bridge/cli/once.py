"""`acp-mcp-bridge once CONFIG.json`: one prompt, its bare reply on stdout (HOST_PROTOCOL §2).

Rule: stdout has the reply or nothing; a failure's words come last on stderr, with exit code 1.
"""

import argparse
import os


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from bridge.cli import options

    parser.add_argument("file", metavar="CONFIG.json", help="a generation A config; it is deleted")
    options.add_daemon_options(parser)


def run(options: argparse.Namespace) -> int:
    from bridge.io.guardian import Guardian

    with Guardian.start() as guardian:
        from bridge import config, once

        return once.run(options.file, config.load(vars(options), os.environ), guardian)
