"""A stdio MCP server as a transport for the mcp package's client.

Owns: the server's process, started by `bridge.io.process` like every child, so that it ends with
all it started, also when the agent is killed. Rule: a server that ends is an error that says how,
with the end of its stderr. Called by `bridge.loop_agent.mcp_link`.
"""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from bridge.io.family import Family
from bridge.io.pipes import FdWriter
from bridge.io.process import Process, spawn
from bridge.log import log
from bridge.wire.lines import LineFramer
from protocol_schemas.agent_requests import McpServer

_EOF, _TERM = 1.0, 0.5
"""Seconds for a server to end by itself, and after TERM."""
_TAIL = 500
_LINE = 256 << 20
_parse: Callable[[bytes], Any] = mcp_types.jsonrpc_message_adapter.validate_json

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


class ServerEnded(Exception):
    """The server's process ended, or closed its stdout, while it was needed."""


@asynccontextmanager
async def stdio_transport(
    server: McpServer, cwd: str | None, family: Family
) -> AsyncGenerator[Streams]:
    """Runs the server; raises BridgeError (`spawn_failed`) and, in a group, ServerEnded."""
    environment = get_default_environment() | {pair.name: pair.value for pair in server.env or ()}
    to_client, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_client = anyio.create_memory_object_stream[SessionMessage](0)
    async with (
        incoming,
        outgoing,
        spawn(
            [server.command or "", *(server.args or ())],
            env=environment,
            cwd=cwd,
            on_stderr=_pass_on,
            family=family,
        ) as process,
        anyio.create_task_group() as tasks,
    ):
        stdin = process.stdin
        assert stdin is not None
        tasks.start_soon(stdin.run)
        tasks.start_soon(_send, stdin, from_client)
        tasks.start_soon(_receive, process, to_client)
        try:
            yield incoming, outgoing
        finally:
            tasks.cancel_scope.cancel()
            await process.stop(eof=_EOF, term=_TERM)


async def _send(stdin: FdWriter, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with messages:
        async for message in messages:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.post(text.encode() + b"\n")
            await stdin.drained()


async def _receive(
    process: Process, messages: MemoryObjectSendStream[SessionMessage | Exception]
) -> None:
    framer = LineFramer(_LINE)
    async with messages:
        while data := await process.stdout.receive():
            for line in framer.feed(data):
                if not line.strip():
                    continue
                try:
                    message = SessionMessage(_parse(line))
                except ValueError:
                    log.warning("on an MCP server's stdout, not MCP: %.200r", bytes(line))
                    continue
                await messages.send(message)
        # The cause first: once the client sees its stream closed, it only knows that much.
        with anyio.move_on_after(_TERM):
            await process.wait()
        await process.drained_stderr(_TERM)
        words = str(process.status or "it closed its stdout")
        tail = process.stderr_tail().strip()[-_TAIL:]
        raise ServerEnded(f"the server ended ({words})" + (f"; its stderr: {tail}" if tail else ""))


def _pass_on(data: bytes) -> None:
    with suppress(OSError):
        os.write(2, data)
