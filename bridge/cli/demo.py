"""`acp-mcp-bridge demo`: the whole main job on loopback; no key, no node, nothing to set up."""

import argparse
import os
import sys
import tempfile

import anyio

from bridge.cli.options import add_loop_option
from bridge.errors import BridgeError, first_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "A host, the daemon, two embedded agents, a scripted model server and an MCP server that "
        "fails once, all on loopback: a streamed reply, steering, a cancel, a retried tool call, "
        "permissions. Exits 0 only if all that is shown really happened."
    )
    add_loop_option(parser)
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="where to leave the trace (a new file in the temp directory)",
    )
    parser.add_argument(
        "--agent",
        metavar="NAME",
        help="with a node agent in place of the embedded ones, as `agents list` names them: a "
        "reply, the retried tool call, the cancel",
    )


def run(options: argparse.Namespace) -> int:
    from bridge.cli import frame
    from bridge.demo import node_play, play
    from bridge.demo.scene import DemoFailed
    from bridge.demo.screen import Screen

    screen = Screen()
    failure: BaseException | None = None
    checks = 0
    trace = options.record or _new_file()
    try:
        daemon = ["--loop", options.loop, "--record", trace]
        if options.agent is None:
            checks = anyio.run(play.play, screen, daemon)
        else:
            checks = anyio.run(node_play.play, screen, daemon, options.agent)
    except* (DemoFailed, BridgeError) as group:
        failure = first_of(group)
    if failure is not None:
        screen.pause()
        print(f"acp-mcp-bridge: the demo failed: {failure}", file=sys.stderr)
        return 1
    screen.plain(f"\nAll of it happened: {checks} checks held, in {screen.seconds:.1f} s.")
    page = f"{trace.removesuffix('.trace')}.html"
    code = frame.run(["trace", "html", trace, "--output", page])
    screen.plain(f"Every byte of it: {trace}\nand to look at:   {page}")
    return code


def _new_file() -> str:
    fd, path = tempfile.mkstemp(prefix="acp-mcp-bridge-demo-", suffix=".trace")
    os.close(fd)
    return path
