"""The composition root: what a daemon consists of, and in which order it ends.

Owns: how each way to end (shutdown, end of input, host gone, signal) becomes an exit code.
Nested context is ownership: leaving the task group is leaving nothing behind. Called by the
commands `stream` and `once`.
"""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

import anyio
from anyio.abc import TaskGroup, TaskStatus

from bridge import log
from bridge.config import Settings, backend
from bridge.host.server import HostServer, Tap
from bridge.io import signals, stdio
from bridge.io.guardian import Guardian
from bridge.io.pipes import FdReader, FdWriter
from bridge.session.daemon import Daemon
from bridge.session.observers import UNOBSERVED, Observers
from bridge.session.operations import Operations
from bridge.session.proxies import Policy
from bridge.wire import codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.trace.recorder import Recorder

_DRAIN, _HURRIED_DRAIN = 1.0, 0.4
"""Seconds at the end for the last answers, and for the host to take what is left for it; the
latter after a signal."""


class Ending:
    """Why the daemon ends: the first cause counts, and a signal at any time."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.event = anyio.Event()
        self.signal = anyio.Event()
        """Set by SIGTERM and SIGINT, whatever the cause was: nothing waits at leisure any more."""

    @property
    def signalled(self) -> bool:
        return self.signal.is_set()

    def set(self, code: int) -> None:
        if self.code is None:
            self.code = code
            self.event.set()

    def interrupt(self, code: int) -> None:
        """A signal; its code counts though the end be under way."""
        self.code = code
        self.event.set()
        self.signal.set()


def run_stream(settings: Settings, guardian: Guardian | None) -> int:
    """Serves the host on stdio; gives the exit code. Raises UsageError."""
    with recording(settings, guardian) as recorder:
        return anyio.run(_stream, settings, guardian, recorder, **backend(settings.loop))


@contextmanager
def recording(settings: Settings, guardian: Guardian | None) -> "Generator[Recorder | None]":
    """The recorder that the settings ask for. Forks: to be entered before the loop runs."""
    if settings.record is None:
        yield None
        return
    # Only for those who record.
    from bridge.trace import secrets
    from bridge.trace.recorder import Recorder

    with Recorder.open(
        settings.record,
        # The trace's head has the command line, and its URL may hold a password or a key.
        environment={**os.environ, "--intercept": settings.intercept or ""},
        family=guardian.family if guardian else None,
        keep_secrets=settings.record_secrets,
    ) as recorder:
        # What the settings give all sessions comes in no packet that the recorder sees.
        for name, value in secrets.of_host(codec.encode({"config": settings.defaults})):
            recorder.secret(name, value)
        yield recorder


async def _stream(
    settings: Settings, guardian: Guardian | None, recorder: "Recorder | None"
) -> int:
    ending = Ending()
    reader, writer = stdio.claim()
    stderr = stdio.Stderr()
    log.configure(settings.log_level, stderr.write)
    writer.on_broken = lambda: ending.set(0)
    async with anyio.create_task_group() as group:
        group.start_soon(writer.run)
        group.start_soon(writer.watch)
        group.start_soon(stderr.writer.run)
        host = HostServer(writer, tap=host_tap(group, recorder))
        daemon = daemon_for(group, host, settings, guardian, recorder, stderr)
        await group.start(watch_signals, ending, daemon)
        operations = Operations(daemon, group, defaults=settings.defaults)
        await _serve(host, reader, operations, ending)
        await daemon.end(hurried=ending.signalled)
        seconds = _HURRIED_DRAIN if ending.signalled else _DRAIN
        with anyio.move_on_after(seconds):
            await operations.settled()
        await drain(writer, stderr.writer, seconds=seconds)
        group.cancel_scope.cancel()
    reader.close()
    return ending.code or 0


def host_tap(group: TaskGroup, recorder: "Recorder | None") -> Tap | None:
    """The recorder at its work, and what takes down the host's packets."""
    if recorder is None:
        return None
    group.start_soon(recorder.run)
    return recorder.tap("host", framing="packets")


def daemon_for(
    group: TaskGroup,
    host: HostServer,
    settings: Settings,
    guardian: Guardian | None,
    recorder: "Recorder | None",
    stderr: stdio.Stderr,
) -> Daemon:
    """The daemon that the settings ask for; its work goes on in `group`."""
    return Daemon(
        group,
        host,
        family=guardian.family if guardian else None,
        environment=os.environ,
        write_stderr=stderr.write,
        policy=Policy(
            mcp=settings.mcp_proxy == "auto",
            model=settings.model_proxy == "auto",
            intercept=settings.intercept,
        ),
        observers=observers(recorder),
    )


def observers(recorder: "Recorder | None") -> Observers:
    """What a daemon tells its recorder."""
    if recorder is None:
        return UNOBSERVED
    from bridge.trace.exchanges import exchange_tap

    mcp = recorder.tap("mcp", framing="packets")
    heads = partial(recorder.record, "mcp", "http")
    exchanges = exchange_tap(recorder)
    return Observers(recorder.taps, recorder.record, exchanges, recorder.secret, mcp, heads)


async def _serve(
    host: HostServer, reader: FdReader, operations: Operations, ending: Ending
) -> None:
    async def read() -> None:
        await host.run(reader, operations.take)
        if not operations.in_order:
            ending.set(0)

    async def finish() -> None:
        await operations.finished.wait()
        ending.set(0)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(finish)
        await ending.event.wait()
        tasks.cancel_scope.cancel()


async def watch_signals(ending: Ending, daemon: Daemon, *, task_status: TaskStatus[None]) -> None:
    async with anyio.create_task_group() as tasks:
        with signals.receive(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
            task_status.started()
            async for number in received:
                if number == signal.SIGHUP:
                    ending.set(0)
                elif ending.signalled:
                    tasks.start_soon(partial(daemon.hurry, eof=0, term=0))
                else:
                    ending.interrupt(128 + number)
                    if daemon.ending:
                        # The end was under way already, at leisure.
                        tasks.start_soon(partial(daemon.hurry, eof=0.7, term=0.5))


async def drain(*writers: FdWriter, seconds: float = _DRAIN) -> None:
    """Waits until the writers have nothing left, so long at most."""
    with anyio.move_on_after(seconds):
        for writer in writers:
            await writer.drained()
