"""`acp-mcp-bridge demo`: the whole main job on loopback; no key, no node, nothing to set up."""

import argparse
import sys

import anyio

from bridge.errors import BridgeError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "A host, the daemon, two embedded agents, a scripted model server and an MCP server that "
        "fails once, all on loopback: a streamed reply, steering, a cancel, a retried tool call, "
        "a permission. Exits 0 only if all of it really happened."
    )
    parser.add_argument(
        "--loop",
        choices=("auto", "asyncio", "uvloop", "trio"),
        default="auto",
        help="the daemon's event loop (auto)",
    )
    parser.add_argument("--record", metavar="FILE", help="leave a trace of everything in FILE")


def run(options: argparse.Namespace) -> int:
    from bridge.demo.play import DemoFailed, play
    from bridge.demo.screen import Screen

    screen = Screen()
    failure: BaseException | None = None
    arguments = ["--loop", options.loop]
    if options.record:
        arguments += ["--record", options.record]
    try:
        anyio.run(play, screen, arguments)
    except* (DemoFailed, BridgeError) as group:
        failure = first(group)
    if failure is not None:
        print(f"acp-mcp-bridge: the demo failed: {failure}", file=sys.stderr)
        return 1
    screen.plain(f"\nAll of it happened, in {screen.seconds:.1f} s. Next: README.md, first screen.")
    if options.record:
        screen.plain(f"The trace is in {options.record}.")
    return 0


def first(failure: BaseException) -> BaseException:
    """The failure, or the first one in a group of groups."""
    while inner := getattr(failure, "exceptions", None):
        failure = inner[0]
    return failure
