"""One prompt and nothing else: the daemon without a host, for `acp-mcp-bridge once`.

Owns: the config file (read, then deleted: it may hold secrets), the session file, and the exit
code. The session it runs is the same as any host's. Called by `bridge.cli.once`.
"""

import os
import stat
from pathlib import Path
from typing import Any

import anyio

from bridge import log
from bridge.app import Ending, daemon_for, drain, host_tap, recording, watch_signals
from bridge.config import Settings, backend
from bridge.errors import BridgeError, UsageError, invalid_request, meant
from bridge.host import responses
from bridge.host.server import HostServer
from bridge.io import stdio
from bridge.io.guardian import Guardian
from bridge.io.pipes import FdWriter
from bridge.session import opening, quirks, translate
from bridge.session.jobs import PromptJob
from bridge.session.session import Session
from bridge.session.turn import TurnResult
from bridge.wire import codec
from protocol_schemas.acp import AgentCapabilities
from protocol_schemas.host import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.trace.recorder import Recorder


def run(path: str, settings: Settings, guardian: Guardian | None) -> int:
    """Runs the prompt of a config file; gives the exit code. Raises UsageError, BridgeError."""
    config = _read(path, settings.defaults)
    with recording(settings, guardian) as recorder:
        return anyio.run(_once, config, settings, guardian, recorder, **backend(settings.loop))


def _read(path: str, defaults: dict[str, Any]) -> Config:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    try:
        os.unlink(path)
    except OSError as error:
        raise UsageError(
            f"cannot delete {path}: {error.strerror}; it may hold secrets and is deleted when "
            "it is read: put it into a directory that can be written"
        ) from None
    try:
        fields = codec.mapping(codec.decode(data))
        if fields is None:
            raise UsageError(f"{path} is not a JSON object")
        for name in sorted(fields.keys() - Config.__struct_fields__):
            hint = meant(name, Config.__struct_fields__)
            log.log.warning("%s: a config has no key %r, it is ignored%s", path, name, hint)
        config = codec.convert(defaults | fields, Config)
    except codec.JSONError as error:
        raise UsageError(f"{path}: {error}") from None
    if config.messages is None and config.user_contents is None:
        raise UsageError(f'{path}: "messages" is missing (or "user_contents")')
    return config


async def _once(
    config: Config, settings: Settings, guardian: Guardian | None, recorder: "Recorder | None"
) -> int:
    ending = Ending()
    _, writer = stdio.claim()
    stderr = stdio.Stderr()
    log.configure(settings.log_level, stderr.write)
    response: responses.Response = {}
    words: str | None = "stopped before the turn had ended"
    async with anyio.create_task_group() as group:
        group.start_soon(writer.run)
        group.start_soon(stderr.writer.run)
        tap = host_tap(group, recorder)
        if tap is not None:
            tap("in", codec.encode({"operation": "prompt", "config": config}))
        daemon = daemon_for(group, HostServer(writer), settings, guardian, recorder, stderr)
        await group.start(watch_signals, ending, daemon)

        async def prompt() -> None:
            response.update(await _prompt(daemon.session(""), config))
            if tap is not None:
                tap("out", codec.encode(response))
            ending.set(0 if response["ok"] else 1)

        group.start_soon(prompt)
        await ending.event.wait()
        await daemon.end(hurried=ending.signalled)
        if response.get("ok") and not ending.signalled:
            await _hand_over(response["reply"], writer, ending)
            words = "stdout was closed before the reply was read" if writer.broken else None
        else:
            words = response.get("error", words)
        if words is not None:
            stderr.write(f"acp-mcp-bridge: {words}\n".encode(errors="replace"))
        await drain(stderr.writer)
        group.cancel_scope.cancel()
    return ending.code or (0 if words is None else 1)


async def _hand_over(reply: str, writer: FdWriter, ending: Ending) -> None:
    """Writes the reply, however slowly it is read, until a signal comes or the reader goes."""

    async def signalled() -> None:
        await ending.signal.wait()
        waiting.cancel_scope.cancel()

    async with anyio.create_task_group() as waiting:
        waiting.start_soon(signalled)
        writer.post(reply.encode(errors="replace"))
        await writer.drained()
        waiting.cancel_scope.cancel()


async def _prompt(session: Session, config: Config) -> responses.Response:
    """Generation A's response to the config, the session restored or noted by `session_path`."""
    request: dict[str, Any] = {"operation": "prompt", "config": {"messages": []}}
    path = Path(config.session_path) if config.session_path else None
    try:
        known = None if path is None else _known(path)
        if known is not None:
            await opening.restore(session, None, known, config)
        result = await _turn(session, config)
        response = responses.turn(request, result, allow_empty=quirks.allows_empty(session, config))
        if response["ok"] and path is not None and known is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(session.session_id or "", encoding="utf-8")
    except BridgeError as error:
        return responses.failure(request, error)
    except (OSError, ValueError) as error:
        # Not text there, or a path that can be none.
        reason = error.strerror if isinstance(error, OSError) else f"not text: {error}"
        words = f"session_path {config.session_path}: {reason}"
        return responses.failure(request, BridgeError(words, code="invalid_request"))
    return response


def _known(path: Path) -> str | None:
    """The session that a file names; None if there is no file. Raises BridgeError for what can
    hold no id, before the turn, which would be lost; to read a pipe would be to wait for a writer,
    with no signal heard."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise invalid_request(
            f"session_path {path} is no regular file; name one, or one that can be made"
        )
    known = path.read_text(encoding="utf-8").strip()
    if not known:
        raise invalid_request(
            f"session_path {path} is empty: it names no session; remove it for a new one"
        )
    return known


async def _turn(session: Session, config: Config) -> TurnResult:
    ended = anyio.Event()
    results: list[TurnResult] = []

    def respond(result: TurnResult) -> None:
        results.append(result)
        ended.set()

    def blocks(can: AgentCapabilities, first: bool) -> list[dict[str, Any]]:
        return translate.prompt_blocks(config, can, first=first, told=quirks.told(session))

    session.queue.put(PromptJob(config, blocks, respond))
    await ended.wait()
    return results[0]
