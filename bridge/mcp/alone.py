"""The MCP proxy as a program of its own: until a signal over HTTP, until end of input on stdio.

Rules: over HTTP stdout holds the ready line and nothing else, and stdin is left alone; on stdio
stdout is MCP and nothing else. Called by the command `mcp`.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import anyio
from anyio.abc import TaskStatus

from bridge.io import signals, stdio
from bridge.io.family import Family
from bridge.log import log
from bridge.mcp.channel import helpers
from bridge.mcp.hub import Hub
from bridge.mcp.lines_front import converse
from bridge.mcp.names import DuplicateName
from bridge.mcp.service import McpProxy
from bridge.mcp.settings import Upstream
from bridge.mcp.view import View
from bridge.wire import codec

READY_WITHIN = 2.0


class Options(NamedTuple):
    """What the command line says. `events`: each attempt is written to stderr."""

    host: str
    port: int
    stdio: bool = False
    short_names: bool = False
    allow_remote: bool = False
    events: bool = False


class _Ending:
    def __init__(self) -> None:
        self.code = 0
        self.event = anyio.Event()


async def serve(upstreams: Sequence[Upstream], options: Options, family: Family) -> int:
    """Serves; gives the exit code. Raises UsageError."""
    ending = _Ending()
    on_event = _write_event if options.events else _drop_event
    async with helpers() as tasks:
        await tasks.start(_watch_signals, ending)
        if options.stdio:
            hub = Hub(
                upstreams,
                family=family,
                tasks=tasks,
                on_event=on_event,
                short_names=options.short_names,
            )
            hub.start()
            tasks.start_soon(_converse, hub, ending)
            tasks.start_soon(_check_names, hub, ending)
            await ending.event.wait()
            hub.close()
            return ending.code
        async with McpProxy(
            on_event,
            family=family,
            host=options.host,
            port=options.port,
            allow_remote=options.allow_remote,
        ) as proxy:
            hub, url, each = proxy.mount_upstreams("", upstreams, short_names=options.short_names)
            await _check_names(hub, ending)
            if not ending.event.is_set():
                sys.stdout.buffer.write(codec.encode({"url": url, "servers": each}) + b"\n")
                sys.stdout.buffer.flush()
            await ending.event.wait()
    return ending.code


async def _check_names(hub: Hub, ending: _Ending) -> None:
    """Waits for the first listing, if it is quick: two tools of one name end the program."""
    await hub.listed(READY_WITHIN)
    try:
        View(hub).tools(hub.catalogues)
    except DuplicateName as error:
        log.error("%s", error)
        ending.code = 1
        ending.event.set()


async def _converse(hub: Hub, ending: _Ending) -> None:
    reader, writer = stdio.claim()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)

        async def send(data: bytes) -> None:
            writer.post(data)
            await writer.drained()

        await converse(View(hub), reader.receive, send)
        with anyio.move_on_after(1):
            await writer.drained()
        tasks.cancel_scope.cancel()
    ending.event.set()


async def _watch_signals(
    ending: _Ending, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    with signals.receive(signal.SIGTERM, signal.SIGINT) as received:
        task_status.started()
        async for number in received:
            if ending.event.is_set():
                # Asked twice: not a moment longer. The guardian sees to what is left.
                os._exit(128 + number)
            ending.code = 128 + number
            ending.event.set()


def _write_event(event: dict[str, Any]) -> None:
    os.write(2, codec.encode(event) + b"\n")


def _drop_event(event: dict[str, Any]) -> None:
    return
