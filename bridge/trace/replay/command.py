"""`trace replay`: finds the part to be played in a trace, and plays it."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from bridge.errors import UsageError
from bridge.trace import view
from bridge.trace.timeline import Entry
from protocol_schemas.trace import Head

_OPENERS = ("session/new", "session/fork")


def run(options: argparse.Namespace) -> int:
    """Plays; gives the exit code. Raises UsageError, BridgeError."""
    _check(options)
    if options.role == "model":
        return _model(options, view.entries(options.file))
    entries, n = _wanted(options)
    if options.role == "client":
        return _client(options, entries, n)
    import anyio

    from bridge.trace.replay import agent
    from bridge.trace.replay.script import script_of

    script = script_of(entries, "agent", n)
    return agent.end_as(anyio.run(agent.play, script, options.delays, **_backend(options.loop)))


def _check(options: argparse.Namespace) -> None:
    if options.role == "client" and not options.argv:
        raise UsageError("--as client needs the agent's command: -- CMD...")
    if options.role != "client" and options.argv:
        raise UsageError(f"--as {options.role} starts no agent: -- CMD... goes with --as client")
    if options.role == "agent" and options.file == "-":
        raise UsageError("an agent hears its client on stdin: give the trace as a file")
    if options.role == "model" and options.n is not None:
        raise UsageError("--n chooses an agent: a model server plays all exchanges of the trace")
    if not options.timeout > 0:
        raise UsageError(f"--timeout {options.timeout:g}: seconds, more than 0")


def _wanted(options: argparse.Namespace) -> tuple[list[Entry], int | None]:
    """The recording to be played, and the agent's number in it.

    A file may hold several recordings, each with an agent 1: the first that has the agent counts.
    """
    recordings = list(_recordings(options.file))
    for entries in recordings:
        numbers = [entry.event.n for entry in entries if entry.event.ch == "acp"]
        if options.n is None and numbers:
            return entries, numbers[0]
        if options.n is not None and options.n in numbers:
            return entries, options.n
    return recordings[0], options.n


def _recordings(path: str) -> Iterator[list[Entry]]:
    """The entries of each recording in a file; at least one."""
    entries: list[Entry] = []
    for item in view.select(view.Selection(path)):
        if isinstance(item, Entry):
            entries.append(item)
        elif isinstance(item, Head) and entries:
            yield entries
            entries = []
    yield entries


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
    from bridge.io.guardian import Guardian

    guardian = Guardian.start()
    import anyio

    from bridge.trace.replay import client
    from bridge.trace.replay.script import script_of

    script = script_of(entries, "client", n)
    sessions = {
        entry.id or "": str(entry.fields["sessionId"])
        for entry in entries
        if entry.role == "response" and entry.method in _OPENERS and "sessionId" in entry.fields
        if entry.event.n == n
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
            out=_writer(sys.stdout.buffer),
            err=_writer(sys.stderr.buffer),
        )

    try:
        failure = anyio.run(play, **_backend(options.loop))
    finally:
        guardian.close()
    if failure is not None:
        print(f"acp-mcp-bridge: {failure}", file=sys.stderr)
    return 0 if failure is None else 1


def _writer(out: BinaryIO) -> Callable[[bytes], None]:
    """Writes at once; to a reader that has seen enough, nothing more."""

    def write(data: bytes) -> None:
        with suppress(BrokenPipeError):
            out.write(data)
            out.flush()

    return write


def _backend(loop: str) -> dict[str, Any]:
    """The keyword arguments of anyio.run."""
    if loop == "trio":
        return {"backend": "trio"}
    return {"backend": "asyncio", "backend_options": {"use_uvloop": loop != "asyncio"}}
