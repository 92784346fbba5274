"""A recorded client: what it asked then, it asks an agent again.

Owns: the conversation with the agent. Rules: session ids that the living agent gives stand where
the recorded ones stood; its requests are answered as they were then, and refused if there were none
like them; what it says goes to stdout, line by line. Called by `bridge.trace.replay.command`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import anyio

from bridge.io.process import Family, spawn
from bridge.trace.replay.agent import Player
from bridge.trace.replay.script import Script, with_member
from bridge.trace.timeline import id_text
from bridge.wire import codec, jsonrpc
from bridge.wire.json_scan import NotJSON
from bridge.wire.jsonrpc import Notification, Request, Response
from bridge.wire.lines import LineFramer

_CEILING = 1 << 30
_EOF, _TERM = 6.0, 3.0


class Sessions:
    """Which living session stands for a recorded one."""

    def __init__(self, recorded: Mapping[str, str]) -> None:
        self._recorded = recorded
        """Recorded session ids by the id of the request that made them."""
        self._living: dict[str, bytes] = {}

    def hear(self, line: bytes) -> None:
        """A line of the agent's: it may name a new session."""
        message = jsonrpc.parse(line)
        if not isinstance(message, Response) or message.error is not None:
            return
        recorded = self._recorded.get(id_text(message.id))
        try:
            result = codec.mapping(codec.decode(message.result)) or {}
        except codec.JSONError:
            return
        living = result.get("sessionId")
        if recorded is not None and isinstance(living, str):
            self._living[recorded] = codec.encode(living)

    def written(self, line: bytes) -> bytes:
        """A line of the client's, with the living id of the session it is about."""
        message = jsonrpc.parse(line.rstrip(b"\r\n"))
        if not isinstance(message, Request | Notification):
            return line
        ident = (codec.mapping(codec.decode(message.params)) or {}).get("sessionId")
        living = self._living.get(ident) if isinstance(ident, str) else None
        if living is None or codec.decode(living) == ident:
            return line
        with suppress(NotJSON):
            line = with_member(line, ("params", "sessionId"), living)
        return line


async def play(
    script: Script,
    recorded: Mapping[str, str],
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    family: Family,
    delays: bool,
    patience: float,
    out: Callable[[bytes], object],
    err: Callable[[bytes], None],
) -> str | None:
    """Plays the client against a command; why it could not be played to its end, or None.

    Raises BridgeError `spawn_failed`.
    """
    player, sessions = Player(script, "client", delays=delays), Sessions(recorded)
    failure: str | None = None
    framer = LineFramer(_CEILING)
    async with spawn(argv, env=env, family=family, on_stderr=err) as process:
        stdin = process.stdin
        assert stdin is not None

        async def listen() -> None:
            while data := await process.stdout.receive():
                for line in framer.feed(data):
                    out(line + b"\n")
                    sessions.hear(line)
                    player.hear(line)
                    while player.refused:
                        stdin.post(player.refused.pop(0))
            player.leave()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stdin.run)
            tasks.start_soon(listen)
            failure = await _say(script, player, sessions, stdin.post, patience)
            if failure is None:
                failure = await _answers(script, player, patience)
            await process.stop(eof=_EOF, term=_TERM)
            tasks.cancel_scope.cancel()
    return failure


async def _say(
    script: Script,
    player: Player,
    sessions: Sessions,
    post: Callable[[bytes], object],
    patience: float,
) -> str | None:
    before: float | None = None
    for number, step in enumerate(script.steps, 1):
        with anyio.move_on_after(patience) as waiting:
            if not await player.until(step.after):
                return f"the agent ended before line {number} of {len(script.steps)} could be said"
        if waiting.cancelled_caught:
            missing = player.missing(step.after)
            return f"what line {number} waits for did not come within {patience:g} s ({missing})"
        await player.pause(before, step)
        before = step.t
        post(sessions.written(player.line(step)))
    return None


async def _answers(script: Script, player: Player, patience: float) -> str | None:
    """Waits for the answers to the last requests."""
    last = {what: n for what, n in script.heard.items() if what[0] in ("answer", "state")}
    with anyio.move_on_after(patience) as waiting:
        if not await player.until(last):
            return f"the agent ended before it had answered everything ({player.missing(last)})"
    if waiting.cancelled_caught:
        return f"not everything came within {patience:g} s ({player.missing(last)})"
    return None
