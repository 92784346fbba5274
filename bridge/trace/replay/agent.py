"""A recorded agent on stdio: what it said then, it says again.

Owns: fds 0, 1 and 2 of `trace replay --as agent`. Rule: with the client that it was recorded with,
every byte is the same, the end included; a request that was never made before is refused.
Called by `bridge.cli.trace`.
"""

from collections import Counter
from collections.abc import Mapping

import anyio

from bridge.io import stdio
from bridge.io.exits import die
from bridge.trace.replay.script import (
    EOF,
    Ending,
    Role,
    Script,
    Signature,
    Step,
    signature_of,
    with_id,
)
from bridge.wire import jsonrpc
from bridge.wire.jsonrpc import Request
from bridge.wire.lines import LineFramer

_CEILING = 1 << 30


class Player:
    """Says a script's lines as what they wait for comes in. `role`: who it is."""

    def __init__(self, script: Script, role: Role, *, delays: bool) -> None:
        self._script = script
        self._role: Role = role
        self._delays = delays
        self._heard: Counter[Signature] = Counter()
        self._ids: dict[tuple[str, int], bytes] = {}
        self._calls: Counter[str] = Counter()
        self._news = anyio.Event()
        self.refused: list[bytes] = []
        """Answers to requests that the recording does not have."""
        self.gone = False

    def hear(self, line: bytes) -> None:
        """A line of the other side's."""
        message = jsonrpc.parse(line)
        signature = signature_of(line, self._role)
        if isinstance(message, Request):
            method = message.method
            self._ids[method, self._calls[method]] = message.id
            self._calls[method] += 1
            if self._calls[method] > self._script.heard.get(("call", method), 0):
                words = f"the recording has no answer to this {method}"
                self.refused.append(jsonrpc.failure(message.id, jsonrpc.INTERNAL_ERROR, words))
        if signature is not None:
            self._heard[signature] += 1
        self._news.set()

    def leave(self) -> None:
        """The other side has gone."""
        self.gone = True
        self._heard[EOF] += 1
        self._news.set()

    def missing(self, after: Mapping[Signature, int]) -> str:
        """What has not come of it, in words; empty if all has."""
        return ", ".join(
            " ".join(what).strip() for what, count in after.items() if self._heard[what] < count
        )

    def line(self, step: Step) -> bytes:
        """The bytes to be said."""
        if step.answers is not None and (ident := self._ids.get(step.answers)) is not None:
            return with_id(step.data, ident)
        return step.data

    async def until(self, after: Mapping[Signature, int]) -> bool:
        """Waits until all of it has come; False if the other side goes before that."""
        while self.missing(after):
            if self.gone:
                return False
            self._news = anyio.Event()
            await self._news.wait()
        return True

    async def pause(self, before: float | None, step: Step) -> None:
        """The time that lay between two lines then."""
        if self._delays and before is not None:
            await anyio.sleep(max(0.0, step.t - before))


async def play(script: Script, delays: bool) -> Ending:
    """Plays the agent until its script is over and what it ended after has come."""
    reader, writer = stdio.claim()
    stderr = stdio.Stderr()
    player = Player(script, "agent", delays=delays)
    framer = LineFramer(_CEILING)

    async def listen() -> None:
        while data := await reader.receive():
            for line in framer.feed(data):
                player.hear(line)
                while player.refused:
                    writer.post(player.refused.pop(0))
        player.leave()

    async with anyio.create_task_group() as tasks:
        for task in (writer.run, stderr.writer.run, listen):
            tasks.start_soon(task)
        before: float | None = None
        for step in script.steps:
            if not await player.until(step.after):
                break
            await player.pause(before, step)
            before = step.t
            (stderr.writer if step.stderr else writer).post(player.line(step))
        await writer.drained()
        await stderr.writer.drained()
        await player.until(script.ending.after)
        await writer.drained()
        tasks.cancel_scope.cancel()
    return script.ending


def end_as(ending: Ending) -> int:
    """The exit code, or the signal in its place."""
    if ending.signal is not None:
        die(ending.signal)
    return ending.code
