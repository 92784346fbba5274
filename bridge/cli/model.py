"""`acp-mcp-bridge model`: the model proxy alone, between any agent and any model server."""

import argparse
import contextlib
import json
import os
import signal
from typing import TYPE_CHECKING

from bridge.cli.options import (
    add_listen_option,
    add_log_option,
    add_loop_option,
    add_record_options,
    add_remote_option,
    address,
)
from bridge.errors import UsageError

if TYPE_CHECKING:
    from bridge.trace.recorder import Recorder
    from protocol_schemas.model import ModelOptions


_BACKLOG = 1 << 20
"""Bytes of events that wait for their reader; what comes while there are more is dropped."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        'The model proxy alone: prints {"url": ...} when it is ready, and forwards what comes '
        "there to the upstream, byte for byte, but for null assistant content in chat completions "
        'requests, which becomes "". Runs until SIGTERM or SIGINT.'
    )
    parser.add_argument(
        "--upstream", metavar="URL", required=True, help="the model server's base URL"
    )
    add_listen_option(parser)
    add_remote_option(parser)
    rules = parser.add_argument_group("rules", "what is changed in chat completions")
    rules.add_argument(
        "--tool-call-content",
        choices=("keep", "empty", "null"),
        default="keep",
        help='null or absent content beside tool calls: as sent, "", or null (default: keep)',
    )
    rules.add_argument(
        "--no-mend-content", action="store_true", help="leave null content without tool calls"
    )
    rules.add_argument(
        "--drop-empty-tool-calls", action="store_true", help="leave `tool_calls: []` out"
    )
    rules.add_argument(
        "--drop-nulls",
        action="store_true",
        help="leave null refusal, function_call and audio out",
    )
    rules.add_argument(
        "--drop-unoffered-calls",
        action="store_true",
        help="take calls to tools that were not offered out of responses",
    )
    rules.add_argument(
        "--no-answer-models",
        action="store_true",
        help="pass it on where the upstream has no list of models",
    )
    limits = parser.add_argument_group("limits", "soft by one call; a refused call gets a 400")
    limits.add_argument("--max-turns", metavar="N", type=int, help="model calls")
    limits.add_argument("--max-turn-tokens", metavar="N", type=int, help="tokens of one answer")
    limits.add_argument("--max-total-tokens", metavar="N", type=int, help="tokens in and out")
    limits.add_argument(
        "--max-seconds", metavar="S", type=float, help="seconds since the first call"
    )
    parser.add_argument(
        "--idle-timeout",
        metavar="S",
        type=float,
        help="give an upstream up that sends nothing for so long (default: never)",
    )
    parser.add_argument(
        "--events", action="store_true", help="print one JSON line for each exchange that ended"
    )
    add_loop_option(parser, None)
    add_log_option(parser, None)
    add_record_options(parser)


def run(options: argparse.Namespace) -> int:
    """Serves until a signal; 130 after SIGINT, 143 after SIGTERM. Raises UsageError."""
    # Imported here: the command line is also parsed to print help.
    import anyio

    from bridge import log
    from bridge.config import backend, load

    names = ("loop", "log_level", "record", "record_secrets")
    settings = load({name: getattr(options, name) for name in names}, os.environ)
    log.configure(settings.log_level)
    with contextlib.ExitStack() as stack:
        recorder = None
        if settings.record is not None:
            from bridge.trace.recorder import Recorder

            # It forks: before the loop runs.
            recorder = stack.enter_context(
                Recorder.open(
                    settings.record,
                    # The URL may hold a password or a key, and the trace names the command line.
                    environment={**os.environ, "--upstream": options.upstream},
                    keep_secrets=settings.record_secrets,
                )
            )
        return anyio.run(_serve, options, recorder, **backend(settings.loop))


async def _serve(options: argparse.Namespace, recorder: "Recorder | None") -> int:
    from bridge.io import signals
    from bridge.io.background import Background
    from bridge.io.pipes import FdWriter, reopen
    from bridge.model.service import ModelProxy
    from bridge.trace.exchanges import exchange_tap

    host, port = address(options.listen)
    settings = _settings(options)
    out = FdWriter(reopen(1, os.O_WRONLY))

    def tell(value: object) -> None:
        # Who reads slowly loses events, and who has left all of them: the agents' calls go on.
        if out.queued <= _BACKLOG:
            out.post(json.dumps(value, separators=(",", ":")).encode() + b"\n")

    with signals.receive(signal.SIGTERM, signal.SIGINT) as received:
        async with (
            Background() as tasks,
            ModelProxy(
                tell if options.events else None,
                None if recorder is None else exchange_tap(recorder),
                host=host,
                port=port,
                allow_remote=options.allow_remote,
            ) as proxy,
        ):
            tasks.start(out.run)
            if recorder is not None:
                tasks.start(recorder.run)
            tell({"url": proxy.mount(options.upstream, options=settings)})
            async for number in received:
                return 128 + number
    raise AssertionError


def _settings(options: argparse.Namespace) -> "ModelOptions":
    from protocol_schemas.model import ModelLimits, ModelOptions

    for name in ("max_turns", "max_turn_tokens", "max_total_tokens", "max_seconds", "idle_timeout"):
        value = getattr(options, name)
        if value is not None and value <= 0:
            raise UsageError(f"--{name.replace('_', '-')} must be above 0")
    return ModelOptions(
        mend_content=not options.no_mend_content,
        tool_call_content=options.tool_call_content,
        drop_empty_tool_calls=options.drop_empty_tool_calls,
        drop_nulls=options.drop_nulls,
        drop_unoffered_calls=options.drop_unoffered_calls,
        answer_models=not options.no_answer_models,
        idle_timeout=options.idle_timeout,
        limits=ModelLimits(
            options.max_turns,
            options.max_turn_tokens,
            options.max_total_tokens,
            options.max_seconds,
        ),
    )
