"""`acp-mcp-bridge doctor`: what is missing on this machine, and the command that mends it."""

import argparse
import os

_MARKS = {"ok": "ok      ", "warn": "warning ", "missing": "missing "}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as one JSON list")


def run(options: argparse.Namespace) -> int:
    """Exit code 3 if something the bridge itself needs is missing."""
    from bridge.agent.checkup import Check, checks
    from bridge.config import misspelt
    from bridge.wire import codec

    found = list(checks(os.environ))
    for name, hint in misspelt(os.environ).items():
        found.append(Check("environment", "warn", f"{name} is no setting{hint}"))
    if options.json:
        print(codec.encode([check._asdict() for check in found]).decode())
    else:
        for check in found:
            print(f"{_MARKS[check.state]} {check.name:<16} {check.words}")
            if check.mend:
                print(f"{'':26}-> {check.mend}")
    return 3 if any(check.state == "missing" for check in found) else 0
