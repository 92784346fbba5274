"""A stdio server as a channel: one process, one JSON-RPC message a line.

Rule: an exit is read off the process, since a grandchild can hold the pipe open. Made by
`bridge.mcp.server` and `kept`.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from bridge.errors import BridgeError
from bridge.io.family import Family
from bridge.io.process import Process, spawn
from bridge.log import log
from bridge.mcp.channel import Fault, Outgoing, Sink, helpers
from bridge.mcp.messages import Answer
from bridge.mcp.settings import Upstream
from bridge.mcp.single_stream import SingleStream
from bridge.wire.lines import LineFramer, LineTooLong

_LAST_WORDS = 0.25
_STDERR_SHOWN = 2000
_MOST_HELD = 64
"""Pieces of what a pipe may hold when its writer has gone: far more than there can be."""


@asynccontextmanager
async def spawned(upstream: Upstream, family: Family, sink: Sink) -> AsyncGenerator["StdioChannel"]:
    """The server's process for as long as the context lasts; raises Fault if it cannot start."""

    def told(data: bytes) -> None:
        log.info("MCP server %r: %s", upstream.name, data.decode(errors="replace").rstrip())

    try:
        async with (
            spawn(
                upstream.argv, env=upstream.env, cwd=upstream.cwd, on_stderr=told, family=family
            ) as process,
            helpers() as tasks,
        ):
            channel = StdioChannel(process, upstream.policy.max_result_bytes, sink)
            tasks.start_soon(channel.watch)
            tasks.start_soon(channel.watch_stdin)
            tasks.start_soon(channel.stdin.run)
            yield channel
    except BridgeError as error:
        if error.code != "spawn_failed":
            raise
        raise Fault("connect", error.message) from None


class StdioChannel(SingleStream):
    """One process's pipes."""

    def __init__(self, process: Process, ceiling: int, sink: Sink) -> None:
        super().__init__(sink)
        assert process.stdin is not None
        self._process = process
        self.stdin = process.stdin
        self._deaf = anyio.Event()
        self.stdin.on_broken = self._deaf.set
        self._framer = LineFramer(ceiling)
        self._ceiling = ceiling
        # Both last first, as the messages are.
        self._lines: list[bytes] = []
        self._rest: list[bytes] = []

    @property
    def ended(self) -> bool:
        """Whether the process has exited."""
        return self._process.status is not None

    async def watch(self) -> None:
        """Ends the reading a moment after the process has exited, whoever still holds the pipe."""
        await self._process.wait()
        await self._end_reading()

    async def watch_stdin(self) -> None:
        """Ends the reading likewise where the server can be told nothing any more."""
        await self._deaf.wait()
        await self._end_reading()

    async def _end_reading(self) -> None:
        """What the pipe holds is kept: the reader may be waiting for a slow caller meanwhile."""
        await anyio.sleep(_LAST_WORDS)
        stdout = self._process.stdout
        while len(self._rest) < _MOST_HELD and (data := stdout.available()):
            self._rest.insert(0, data)
        stdout.close()

    async def exchange(self, request: Outgoing) -> Answer:
        if self.ended:
            raise await self.died(request)
        self.write(request)
        return await self.answer(request)

    async def next_data(self, request: Outgoing) -> bytes | None:
        """The next line; raises Fault for one over the ceiling."""
        while not self._lines:
            data = await self._process.stdout.receive()
            if not data and self._rest:
                data = self._rest.pop()
            try:
                if not data:
                    return self._framer.end() or None
                self._lines = list(self._framer.feed(data))[::-1]
            except LineTooLong:
                raise request.too_large(self._ceiling) from None
        line = self._lines.pop()
        if len(line) > self._ceiling:
            raise request.too_large(self._ceiling)
        return line

    def write(self, request: Outgoing) -> None:
        """Writes a request; never waits. What a closed stdin did not take was not written."""
        self.post(request.body)
        request.written = not self.stdin.broken

    async def send(self, message: bytes) -> None:
        self.post(message)

    def post(self, message: bytes) -> None:
        """Writes a message; never waits."""
        self.stdin.post(message, b"\n")

    async def died(self, request: Outgoing) -> Fault:
        """What the end of its output means: exit status and last words."""
        with anyio.move_on_after(_LAST_WORDS * 2):
            await self._process.wait()
        status = self._process.status
        if status is None:
            end = "stdin" if self.stdin.broken else "stdout"
            return request.fault(f"the server closed its {end}, but runs on")
        await self._process.drained_stderr(_LAST_WORDS)
        last = self._process.stderr_tail().strip()[-_STDERR_SHOWN:]
        return request.fault(
            f"the server ended with {status}" + (f"; its stderr ends: {last}" if last else "")
        )
