"""The embedded agent as a process: ACP on stdio until the client is gone.

Owns: fds 0 and 1, the task groups, the order of the end. Rules: nothing but ACP is ever on stdout
(`stdio.claim`); at the end of input, on SIGTERM, SIGINT
or SIGHUP turns are cancelled and answered, tools and connections ended, each within a bound.
Called by `bridge.cli.agent`.
"""

import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from bridge.io import signals, stdio
from bridge.io.family import Family
from bridge.log import log
from bridge.loop_agent.agent import Agent
from bridge.loop_agent.front import Front
from bridge.loop_agent.model import Model, Settings
from bridge.loop_agent.sessions import Sessions, Setup
from bridge.loop_agent.store import Store
from bridge.loop_agent.turn import Limits
from bridge.rpc.connection import Connection
from bridge.wire.lines import LineTooLong

_FLUSH = 1.0
_FAREWELL = 4.0


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    sessions: Path
    setup: Setup = field(default_factory=Setup)
    limits: Limits = field(default_factory=Limits)


async def serve(options: Options, family: Family) -> int:
    """Runs the agent; gives the exit code: 0 at the end of input, 128 + n after signal n.

    `family` is of all processes it starts. Raises UsageError.
    """
    store = Store(options.sessions)
    reader, writer = stdio.claim()
    reading = anyio.CancelScope()
    writer.on_broken = reading.cancel
    connection = Connection(reader, writer)
    front = Front(connection, writer)
    model = Model(Settings.from_environment())
    received: list[int] = []
    async with anyio.create_task_group() as lasting:
        lasting.start_soon(writer.run)
        lasting.start_soon(writer.watch)
        await lasting.start(_signals, reading, received)
        sessions = Sessions(store, options.setup, family, lasting)
        async with anyio.create_task_group() as requests:
            agent = Agent(connection, requests, front, sessions, store, model, options.limits)
            try:
                with reading:
                    await connection.run(agent)
            except LineTooLong as error:
                log.error("%s", error)
            connection.end("the client is gone")
            with anyio.move_on_after(_FAREWELL):
                await sessions.close_all()
            requests.cancel_scope.cancel()
        with anyio.move_on_after(_FLUSH):
            await model.close()
            await writer.drained()
        lasting.cancel_scope.cancel()
    return 128 + received[0] if received else 0


async def _signals(
    reading: anyio.CancelScope, received: list[int], *, task_status: TaskStatus[None]
) -> None:
    """Turns the first signal into the end of input; a second one ends the process at once."""
    with signals.receive(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as coming:
        task_status.started()
        async for number in coming:
            if received:
                os._exit(128 + received[0])
            received.append(number)
            reading.cancel()
