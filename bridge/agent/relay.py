"""The transparent relay: an ACP client on one side, its agent on the other, the bytes in between.

Owns: the two pumps and the end of the pair. Rules: what is read on one side is written on the
other, the same bytes in the same order, nothing held back for the end of a line, at most a read's
worth waiting; each side sees of the other what it would see without us: the end of a stream, an
exit, a signal, slowness. When the client is gone, the agent and all it started go too.
Called by `bridge.cli.acp`.
"""

import os
import signal
from collections.abc import Callable

import anyio
from anyio.abc import TaskStatus

from bridge.io import signals
from bridge.io.pipes import FdReader, FdWriter
from bridge.io.process import ExitStatus, Process
from bridge.rpc.connection import Tap

PASSED_ON = tuple(
    getattr(signal, f"SIG{name}") for name in ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2")
)
_TO_THE_GROUP = (signal.SIGINT, signal.SIGQUIT)
"""What a terminal sends to all processes in the foreground."""
EOF_GRACE = 6.0
"""Seconds without a word from the agent after its client has left, before it is asked to end."""
TERM_GRACE = 3.0
_QUIET = 1.0


class Relay:
    """One client and one agent."""

    def __init__(
        self, process: Process, reader: FdReader, writer: FdWriter, tap: Tap | None
    ) -> None:
        assert process.stdin is not None
        self._process = process
        self._stdin = process.stdin
        self._reader = reader
        self._writer = writer
        self._tap = tap
        self._passed = 0
        """Bytes the client was given."""
        self.on_gone: Callable[[], object] | None = None
        """Called when the client has said all, or listens no more, while the agent still talks."""
        self._gone = anyio.Event()
        """Set by then."""
        self.left_first = False
        """Whether the client was gone before the agent had said all."""
        writer.on_broken = self._deaf

    async def run(self) -> None:
        """Relays until the agent has ended and all it wrote was passed on."""
        async with anyio.create_task_group() as tasks:
            for task in (
                self._stdin.run,
                self._writer.run,
                self._writer.watch,
                self._to_agent,
                self._watch_exit,
                self._watch_client,
            ):
                tasks.start_soon(task)
            await self._to_client()
            self.left_first = self._gone.is_set()
            self.on_gone = None
            await self._writer.drained()
            # The agent may have closed its stdout, and live.
            self._writer.close()
            await self._process.wait()
            tasks.cancel_scope.cancel()

    async def _to_agent(self) -> None:
        tap, stdin = self._tap, self._stdin
        while data := await self._reader.receive():
            stdin.post(data)
            if tap is not None:
                tap("out", data)
            await stdin.drained()
            if stdin.broken:
                # As its own pipe would tell the client.
                self._reader.close()
                return
        self._stdin.close()
        self._leave()

    async def _to_client(self) -> None:
        tap, writer = self._tap, self._writer
        while data := await self._process.stdout.receive():
            writer.post(data)
            if tap is not None:
                # While the client reads it already.
                tap("in", data)
            await writer.drained()
            self._passed += len(data)

    def _deaf(self) -> None:
        """The client reads no more: the agent's next write fails."""
        self._process.stdout.close()
        self._leave()

    def _leave(self) -> None:
        if not self._gone.is_set():
            self._gone.set()
            if self.on_gone is not None:
                self.on_gone()

    async def _watch_exit(self) -> None:
        """A grandchild may hold stdout open after the agent's exit: it is read while it talks."""
        await self._process.wait()
        seen = -1
        while seen != self._passed or self._writer.queued:
            seen = self._passed
            await anyio.sleep(_QUIET)
        self._process.stdout.close()

    async def _watch_client(self) -> None:
        await self._gone.wait()
        seen = -1
        while self._process.status is None and seen != self._passed:
            seen = self._passed
            with anyio.move_on_after(EOF_GRACE):
                await self._process.wait()
        await self._process.stop(eof=0, term=TERM_GRACE)


async def run(relay: Relay, process: Process) -> ExitStatus:
    """Relays between a client and a running agent, signals to us included; how the agent ended."""
    async with anyio.create_task_group() as tasks:
        await tasks.start(_pass_on_signals, process)
        await relay.run()
        tasks.cancel_scope.cancel()
    return await process.wait()


async def _pass_on_signals(process: Process, *, task_status: TaskStatus[None]) -> None:
    with signals.receive(*PASSED_ON) as received:
        task_status.started()
        async for number in received:
            if number in _TO_THE_GROUP:
                process.signal_group(number)
            elif process.status is None:
                os.kill(process.pid, number)
