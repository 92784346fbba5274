"""`acp-mcp-bridge acp -- CMD...`: the relay, to be started by an ACP client in place of its agent.

Rule: to the client it is the agent: the same bytes, exit code and stderr, the same death by a
signal. Of its own it says nothing but what goes wrong with itself, on stderr.
"""

import argparse
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from bridge.errors import UsageError

if TYPE_CHECKING:
    from bridge.agent.active import Note
    from bridge.agent.behind import Behind
    from bridge.agent.relay import Relay
    from bridge.config import Settings
    from bridge.io.exits import ExitStatus
    from bridge.io.guardian import Guardian
    from bridge.io.pipes import FdReader, FdWriter
    from bridge.io.process import Process
    from bridge.io.stdio import Stderr
    from bridge.session.observers import Observers
    from bridge.session.proxies import Proxies
    from bridge.trace.recorder import Recorder

_STDERR_BACKLOG = 1 << 26
_STDERR_DRAIN = 5.0
_STDERR_GRACE = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from bridge.cli import options

    options.add_relay_options(parser)
    parser.add_argument(
        "--policy",
        choices=("allow", "deny"),
        help="answer the agent's permission requests so, without asking the client",
    )
    parser.description = (
        "Stands between an ACP client and its agent: give the client this command in place of the "
        "agent's. Without --mcp-proxy auto, --model-proxy auto or --policy every byte passes as it "
        "is; with --record everything is kept."
    )
    parser.add_argument(
        "--component",
        action="store_true",
        help="be a component of a proxy chain (proxy/initialize) on stdio, without CMD",
    )
    parser.add_argument("argv", metavar="-- CMD", nargs="*", help="the agent's command")


def run(options: argparse.Namespace) -> int:
    """Relays; ends as the agent ended. Raises UsageError, BridgeError."""
    if options.component and options.argv:
        raise UsageError("a component starts no agent: give --component, or -- CMD...")
    if not options.component and not options.argv:
        raise UsageError("give the agent's command: acp [OPTIONS] -- CMD...")
    from bridge.io.guardian import Guardian

    with Guardian.start() as guardian:
        from bridge import config

        status = _run(options, config.load(vars(options), os.environ), guardian)
    if status.signal is not None:
        from bridge.io.exits import die

        die(status.signal)
    return status.code or 0


def _run(options: argparse.Namespace, settings: "Settings", guardian: "Guardian") -> "ExitStatus":
    import anyio

    from bridge.app import recording
    from bridge.config import backend

    with recording(settings, guardian) as recorder:
        return anyio.run(_relay, options, settings, guardian, recorder, **backend(settings.loop))


async def _relay(
    options: argparse.Namespace,
    settings: "Settings",
    guardian: "Guardian",
    recorder: "Recorder | None",
) -> "ExitStatus":
    import anyio

    from bridge import log
    from bridge.app import observers
    from bridge.errors import BridgeError
    from bridge.io import stdio
    from bridge.session.proxies import Policy, Proxies

    reader, writer = stdio.claim()
    stderr = stdio.Stderr(_STDERR_BACKLOG)
    log.configure(settings.log_level, stderr.write)
    observed = observers(recorder)
    policy = Policy(options.mcp_proxy == "auto", options.model_proxy == "auto", settings.intercept)
    failure: BridgeError | None = None
    status: ExitStatus | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(stderr.writer.run)
        if recorder is not None:
            group.start_soon(recorder.run)

        def told(kind: str, session: str, fields: dict[str, Any]) -> None:
            observed.note(kind, "attempt", fields, session=session)

        proxies = Proxies(
            group,
            family=guardian.family,
            environment=os.environ,
            told=told,
            alive=lambda _session: None,
            policy=policy,
            observers=observed,
        )
        ends = _Ends(reader, writer, stderr)
        try:
            if options.component:
                status = await _run_component(options, proxies, observed, recorder, ends)
            else:
                status = await _run_agent(options, guardian, proxies, observed, recorder, ends)
        except BridgeError as error:
            failure = error
        proxies.end()
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    assert status is not None
    return status


class _Ends(NamedTuple):
    """The client's pipes."""

    reader: "FdReader"
    writer: "FdWriter"
    stderr: "Stderr"


async def _run_agent(
    options: argparse.Namespace,
    guardian: "Guardian",
    proxies: "Proxies",
    observed: "Observers",
    recorder: "Recorder | None",
    ends: _Ends,
) -> "ExitStatus":
    """The agent, from its start to the last of what it said."""
    import anyio

    from bridge.agent.relay import run
    from bridge.io.process import spawn
    from protocol_schemas.host import Config

    taps = observed.taps
    tap_stderr = taps("stderr", "") if taps is not None else None

    def on_stderr(data: bytes) -> None:
        if tap_stderr is not None:
            tap_stderr("in", data)
        ends.stderr.write(data)

    argv, env = await proxies.launch("relay", Config(), (list(options.argv), dict(os.environ)))
    async with spawn(argv, env=env, on_stderr=on_stderr, family=guardian.family) as process:
        start = {"argv": argv, "cwd": os.getcwd(), "pid": process.pid}
        observed.note("process", "start", start)
        relay = _relay_for(options, process, ends, proxies, observed, recorder)
        relay.on_gone = lambda: observed.note("process", "eof", {})
        status = await run(relay, process)
        await process.drained_stderr(_STDERR_GRACE)
        ended = {"exit_code": status.code, "signal": status.signal, "eof": relay.left_first}
        observed.note("process", "exit", ended)
        with anyio.move_on_after(_STDERR_DRAIN):
            await ends.stderr.writer.drained()
    return status


def _relay_for(
    options: argparse.Namespace,
    process: "Process",
    ends: _Ends,
    proxies: "Proxies",
    observed: "Observers",
    recorder: "Recorder | None",
) -> "Relay":
    """The transparent relay, or the active one where something is to be changed."""
    from bridge.agent.relay import Relay

    tap = observed.taps("acp", "") if observed.taps is not None else None
    behind = _behind(options, proxies)
    if behind is None and options.policy is None:
        return Relay(process, ends.reader, ends.writer, tap)
    from bridge.agent.active import ActiveRelay
    from bridge.agent.behind import Behind

    return ActiveRelay(
        process,
        ends.reader,
        ends.writer,
        tap,
        client_tap=recorder.tap("client", n=1) if recorder is not None else None,
        behind=behind or Behind(),
        policy=options.policy,
        note=_decided(observed),
    )


def _behind(options: argparse.Namespace, proxies: "Proxies") -> "Behind | None":
    """What is put behind our proxies; None for nothing."""
    mcp, model = options.mcp_proxy == "auto", options.model_proxy == "auto"
    if not mcp and not model:
        return None
    from bridge.agent.behind import Behind
    from protocol_schemas.host import Config

    async def servers(name: str, given: list[Any], http: bool) -> list[Any]:
        return await proxies.servers(name, Config(), given, http=http)

    async def place(url: str) -> str:
        return await proxies.place_model("relay", Config(), url)

    return Behind(servers if mcp else None, place if model else None)


def _decided(observed: "Observers") -> "Note | None":
    """Takes down a decision, where something is recorded."""
    if observed.taps is None:
        return None
    return lambda kind, data: observed.note("bridge", kind, data)


async def _run_component(
    options: argparse.Namespace,
    proxies: "Proxies",
    observed: "Observers",
    recorder: "Recorder | None",
    ends: _Ends,
) -> "ExitStatus":
    """A component of a chain, until its conductor has no more to say."""
    import anyio

    from bridge.agent.behind import Behind
    from bridge.agent.component import Component, serve
    from bridge.io.exits import ExitStatus

    behind = _behind(options, proxies) or Behind()
    component = Component(options.policy, behind, _decided(observed))
    tap = recorder.tap("conductor", n=1) if recorder is not None else None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ends.writer.run)
        await serve(component, behind, ends.reader, ends.writer, tap)
        tasks.cancel_scope.cancel()
    return ExitStatus(0, None)
