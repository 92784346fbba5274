"""`trace replay`: finds the part to be played in a trace, and plays it."""

import argparse
import os
import sys
from typing import Any

from bridge.errors import UsageError
from bridge.trace import view
from bridge.trace.timeline import Entry

_OPENERS = ("session/new", "session/fork")


def run(options: argparse.Namespace) -> int:
    """Plays; gives the exit code. Raises UsageError, BridgeError."""
    entries = view.entries(options.file)
    if options.role == "model":
        return _model(options, entries)
    numbers = [entry.event.n for entry in entries if entry.event.ch == "acp"]
    n: int | None = options.n if options.n is not None else next(iter(numbers), None)
    if options.role == "client":
        return _client(options, entries, n)
    import anyio

    from bridge.trace.replay import agent
    from bridge.trace.replay.script import script_of

    script = script_of(entries, "in", n)
    return agent.end_as(anyio.run(agent.play, script, options.delays, **_backend(options.loop)))


def _model(options: argparse.Namespace, entries: list[Entry]) -> int:
    import signal

    import anyio

    from bridge.io import signals
    from bridge.trace.replay import model
    from bridge.trace.traffic import Traffic

    traffic = Traffic(entries)
    if not traffic.exchanges:
        raise UsageError(f"{options.file}: no model exchange was recorded")
    answers = model.Answers(traffic, delays=options.delays)

    def ready(url: str) -> None:
        print(f'{{"url":"{url}"}}', flush=True)

    async def play() -> int:
        number = signal.SIGTERM
        with signals.receive(signal.SIGTERM, signal.SIGINT) as received:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(model.serve, answers, ready)
                number = await anext(aiter(received))
                tasks.cancel_scope.cancel()
        return 128 + number

    return anyio.run(play, **_backend(options.loop))


def _client(options: argparse.Namespace, entries: list[Entry], n: int | None) -> int:
    if not options.argv:
        raise UsageError("--as client needs the agent's command: -- CMD...")
    from bridge.io.guardian import Guardian

    guardian = Guardian.start()
    import anyio

    from bridge.trace.replay import client
    from bridge.trace.replay.script import script_of

    script = script_of(entries, "out", n)
    sessions = {
        entry.id or "": str(entry.fields["sessionId"])
        for entry in entries
        if entry.role == "response" and entry.method in _OPENERS and "sessionId" in entry.fields
    }

    async def play() -> str | None:
        return await client.play(
            script,
            sessions,
            options.argv,
            env=os.environ,
            family=guardian.family,
            delays=options.delays,
            patience=options.timeout,
            out=sys.stdout.buffer.write,
        )

    try:
        failure = anyio.run(play, **_backend(options.loop))
    finally:
        sys.stdout.flush()
        guardian.close()
    if failure is not None:
        print(f"acp-mcp-bridge: {failure}", file=sys.stderr)
    return 0 if failure is None else 1


def _backend(loop: str) -> dict[str, Any]:
    """The keyword arguments of anyio.run."""
    if loop == "trio":
        return {"backend": "trio"}
    return {"backend": "asyncio", "backend_options": {"use_uvloop": loop != "asyncio"}}
