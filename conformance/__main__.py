"""`python -m conformance agent|client|daemon -- CMD...`: the command line and its exit codes.

0: conforms; 1: could not run; 2: usage; 3: a MUST failed. docs/conformance.md is its manual.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from conformance import report
from conformance.check import Check, Outcome
from conformance.process import CannotStart

TIMEOUT = 20.0
KINDS = ("agent", "client", "daemon")
_HELP = {
    "agent": "plays an ACP client against the command of an agent",
    "client": "plays an agent that the command of a client starts",
    "daemon": "plays a host against the command of a daemon (docs/host-protocol.md)",
}


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    kinds = top.add_subparsers(dest="kind", required=True)
    for kind in KINDS:
        one = kinds.add_parser(kind, help=_HELP[kind])
        one.add_argument("--list", action="store_true", help="the checks, and what they demand")
        one.add_argument(
            "--only", action="append", default=[], metavar="PATTERN", help="some checks alone"
        )
        one.add_argument("--json", action="store_true", help="one JSON object in place of text")
        one.add_argument("--timeout", type=float, default=TIMEOUT, metavar="SECONDS")
        one.add_argument("--failed", action="store_true", help="print failures only")
        if kind == "agent":
            _agent_options(one)
        one.add_argument("command", nargs="*", metavar="CMD")
    table = kinds.add_parser("table", help="a Markdown table of files that --json has written")
    table.add_argument("files", nargs="+", type=Path, metavar="NAME.json")
    return top


def _agent_options(one: argparse.ArgumentParser) -> None:
    from conformance.agent.lab import Options

    base = Options()
    one.add_argument("--prompt", default=base.prompt, metavar="TEXT", help="gets a text reply")
    one.add_argument(
        "--tool-prompt", default=base.tool_prompt, metavar="TEXT", help="makes it call a tool"
    )
    one.add_argument(
        "--slow-prompt", default=base.slow_prompt, metavar="TEXT", help="keeps it busy for seconds"
    )
    one.add_argument("--mode", metavar="ID", help="session mode to set first: one that asks")
    one.add_argument("--auth-method", metavar="ID", help="authenticate with this method first")
    one.add_argument("--cwd", type=Path, help="the sessions' directory; a temporary one by default")
    one.add_argument(
        "--session-meta", type=json.loads, default={}, metavar="JSON", help="_meta of session/new"
    )


def checks_of(kind: str) -> Sequence[Check[Any]]:
    """Imported late: --help needs none of it."""
    if kind == "agent":
        from conformance.agent.suite import SUITE as AGENT

        return AGENT.checks
    if kind == "client":
        from conformance.client.suite import SUITE as CLIENT

        return CLIENT.checks
    from conformance.daemon.suite import SUITE as DAEMON

    return DAEMON.checks


async def outcomes(options: argparse.Namespace, tell: Any) -> tuple[list[Outcome], dict[str, Any]]:
    """Runs the suite that the options name; also gives what is known of the program."""
    if options.kind == "agent":
        from conformance.agent.suite import run_agent

        return await run_agent(options, tell)
    if options.kind == "client":
        from conformance.client.suite import run_client

        return await run_client(options, tell)
    from conformance.daemon.suite import run_daemon

    return await run_daemon(options, tell)


def main(arguments: Sequence[str] | None = None) -> int:
    top = parser()
    options = top.parse_args(arguments)
    if options.kind == "table":
        return _table(options.files)
    from conformance.check import Suite

    suite: Suite[Any] = Suite(options.kind)
    suite.checks = list(checks_of(options.kind))
    options.chosen = suite.chosen(options.only)
    if not options.chosen:
        top.error(f"no check is named {' or '.join(options.only)}; --list shows all")
    if options.list:
        print(report.listing(options.chosen))
        return 0
    if not options.command:
        top.error("no command: write it after --, as in: agent -- node my-agent.js")
    colour = sys.stdout.isatty()

    def tell(outcome: Outcome) -> None:
        if not options.json and (outcome.verdict == "failed" or not options.failed):
            print(report.line(outcome, colour=colour), flush=True)

    began = time.monotonic()
    try:
        found, about = anyio.run(outcomes, options, tell)
    except CannotStart as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if options.json:
        print(report.document(found, options.command, about))
    else:
        print(report.summary(found, time.monotonic() - began))
    return 3 if any(outcome.breaks for outcome in found) else 0


def _table(files: Sequence[Path]) -> int:
    documents: list[dict[str, Any]] = []
    for file in files:
        try:
            documents.append({"name": file.stem, **json.loads(file.read_text())})
        except OSError as error:
            print(f"conformance: {file}: {error.strerror}", file=sys.stderr)
            return 1
        except (ValueError, TypeError) as error:
            print(f"conformance: {file} is not what --json writes: {error}", file=sys.stderr)
            return 1
    try:
        print(report.markdown(documents))
    except KeyError as error:
        print(f"conformance: a file is not what --json writes: {error} is missing", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
