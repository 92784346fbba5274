"""`acp-mcp-bridge agent`: the embedded agent, an ACP agent on stdio over one chat model."""

import argparse
import os
from pathlib import Path

from bridge.cli.options import add_log_option, add_loop_option
from bridge.errors import UsageError
from bridge.io.family import Family
from bridge.io.guardian import Guardian

LOCAL_TOOLS = ("bash", "edit", "search")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "An ACP agent on stdio: a chat loop on OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL, "
        "with the session's MCP tools and, if asked for, tools of its own."
    )
    parser.add_argument(
        "--tools",
        metavar="LIST",
        default="",
        help="local tools, separated by commas: bash, edit, search (default: none)",
    )
    parser.add_argument(
        "--permission",
        choices=["ask", "auto"],
        default="ask",
        help="the mode sessions begin in: ask before each local tool call, or not (default: ask)",
    )
    parser.add_argument(
        "--sessions",
        metavar="DIR",
        type=Path,
        help="where sessions are kept (default: acp-mcp-bridge/sessions in the user's state "
        "directory)",
    )
    parser.add_argument(
        "--system-prompt",
        metavar="TEXT",
        default="",
        help="the agent's own instructions, sent as the system message (default: none)",
    )
    parser.add_argument(
        "--max-model-requests",
        metavar="N",
        type=int,
        default=200,
        help="model requests in one turn, after which it ends as max_turn_requests (default: 200)",
    )
    parser.add_argument(
        "--context-window",
        metavar="TOKENS",
        type=int,
        default=128_000,
        help="the model's context window, told to clients (default: 128000)",
    )
    add_loop_option(parser)
    add_log_option(parser)


def run(options: argparse.Namespace) -> int:
    """Runs the agent; gives the exit code. Raises UsageError."""
    names = [name.strip() for name in options.tools.split(",") if name.strip()]
    for name in names:
        if name not in LOCAL_TOOLS:
            raise UsageError(f"--tools: no tool {name!r}; there are {', '.join(LOCAL_TOOLS)}")
    for name in ("max_model_requests", "context_window"):
        if getattr(options, name) < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1")
    # Before anything else: it is forked from this process, and wants it small and single-threaded.
    with Guardian.start() as guardian:
        return _run(options, names, guardian.family)


def _run(options: argparse.Namespace, names: list[str], family: Family) -> int:
    # Imported here: the command line is also parsed to print help.
    import anyio

    from bridge import log
    from bridge.config import backend
    from bridge.loop_agent.main import Options, serve
    from bridge.loop_agent.sessions import Setup
    from bridge.loop_agent.turn import Limits

    log.configure(options.log_level)
    setup = Setup(
        tools=tuple(dict.fromkeys(names)),  # pyright: ignore[reportArgumentType]
        mode=options.permission,
        system_prompt=options.system_prompt,
    )
    limits = Limits(options.max_model_requests, options.context_window)
    settings = Options(options.sessions or default_directory(), setup, limits)
    return anyio.run(serve, settings, family, **backend(options.loop))


def default_directory() -> Path:
    """Where sessions are kept if nothing else is said (XDG base directories)."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "acp-mcp-bridge" / "sessions"
