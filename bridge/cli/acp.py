"""`acp-mcp-bridge acp -- CMD...`: the relay, to be started by an ACP client in place of its agent.

Rule: to the client it is the agent: the same bytes, exit code and stderr, the same death by a
signal. Of its own it says nothing but what goes wrong with itself, on stderr.
"""

import argparse
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.config import Settings
    from bridge.io.exits import ExitStatus
    from bridge.io.guardian import Guardian
    from bridge.trace.recorder import Recorder

HELP = "stand between an ACP client and its agent: a relay that records"
_STDERR_BACKLOG = 1 << 26
_STDERR_DRAIN = 5.0
_STDERR_GRACE = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from bridge.cli import options

    options.add_daemon_options(parser)
    parser.add_argument("argv", metavar="-- CMD", nargs="+", help="the agent's command")


def run(options: argparse.Namespace) -> int:
    """Relays; ends as the agent ended. Raises UsageError, BridgeError."""
    from bridge.io.guardian import Guardian

    guardian = Guardian.start()
    from bridge import config

    try:
        status = _run(options.argv, config.load(vars(options), os.environ), guardian)
    finally:
        sys.stdout.flush()
        guardian.close()
    if status.signal is not None:
        _die(status.signal)
    return status.code or 0


def _run(argv: list[str], settings: "Settings", guardian: "Guardian") -> "ExitStatus":
    import anyio

    from bridge.app import recording
    from bridge.config import backend

    with recording(settings, guardian) as recorder:
        return anyio.run(_relay, argv, settings, guardian, recorder, **backend(settings.loop))


async def _relay(
    argv: list[str], settings: "Settings", guardian: "Guardian", recorder: "Recorder | None"
) -> "ExitStatus":
    import anyio

    from bridge import log
    from bridge.agent.relay import relay
    from bridge.io import stdio
    from bridge.io.process import spawn

    reader, writer = stdio.claim()
    stderr = stdio.Stderr(_STDERR_BACKLOG)
    log.configure(settings.log_level, stderr.write)
    tap, tap_stderr, note = None, None, _unnoted
    if recorder is not None:
        tap, tap_stderr = recorder.taps("acp", ""), recorder.taps("stderr", "")
        note = recorder.record

    def on_stderr(data: bytes) -> None:
        if tap_stderr is not None:
            tap_stderr("in", data)
        stderr.write(data)

    async with spawn(argv, env=os.environ, on_stderr=on_stderr, family=guardian.family) as process:
        note("process", "start", {"argv": argv, "cwd": os.getcwd(), "pid": process.pid})
        async with anyio.create_task_group() as group:
            group.start_soon(stderr.writer.run)
            if recorder is not None:
                group.start_soon(recorder.run)
            status = await relay(process, reader, writer, tap)
            await process.drained_stderr(_STDERR_GRACE)
            note("process", "exit", {"exit_code": status.code, "signal": status.signal})
            with anyio.move_on_after(_STDERR_DRAIN):
                await stderr.writer.drained()
            group.cancel_scope.cancel()
    return await process.wait()


def _unnoted(channel: str, kind: str, data: object) -> None:
    """The note of a relay that does not record."""


def _die(name: str) -> None:
    """Ends this process by the signal that ended the agent, without a core of its own."""
    import resource

    number = getattr(signal, name, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
