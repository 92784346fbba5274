"""Waiting on a turn until it has ended: its deadlines, its cancel, its late text.

Owns: the clock of a turn. Rule: however the turn goes, `attend` returns only when it has ended,
and it does end: an agent that does not answer a cancel within the grace is killed.
Called by `bridge.session.session` right after the prompt was sent.
"""

from typing import TYPE_CHECKING

import anyio
import msgspec

from bridge.errors import BridgeError
from bridge.session.quirks import settle
from bridge.session.turn import Turn
from protocol_schemas.host import Config

if TYPE_CHECKING:
    from bridge.session.session import Session

CLOSE_GRACE = 5.0
LATE_TEXT = 1.0
"""Seconds that text is waited for after a response that came without any (HOST §2)."""
_QUIET = 0.05
"""Once late text has begun, this many seconds without more of it end the turn."""
_BREATH = 0.005
"""So long is a turn's late text waited for when the next prompt is there already."""
_UNQUIET = 0.25
"""The longest that a next turn waits for the last one to be over."""


class Limits(msgspec.Struct):
    """A turn's deadlines in seconds; None is none."""

    turn: float | None
    idle: float | None
    grace: float

    @classmethod
    def of(cls, config: Config, session: Config) -> "Limits":
        """Those of the prompt, else those of its session."""
        return cls(
            config.turn_timeout if config.turn_timeout is not None else session.turn_timeout,
            config.idle_timeout if config.idle_timeout is not None else session.idle_timeout,
            grace_of(config, session),
        )


def grace_of(config: Config, session: Config) -> float:
    """`close_grace` in seconds."""
    for given in (config.close_grace, session.close_grace):
        if given is not None:
            return given
    return CLOSE_GRACE


async def attend(session: "Session", turn: Turn, limits: Limits) -> None:
    """Returns when the turn has ended, and the next one may begin."""
    await _end(session, turn, limits)
    if turn.stopped is not None:
        await _quiet(session, _QUIET)
    elif any(session.queue.prompts()):
        # With nobody between the turns who would take a moment.
        await _quiet(session, _BREATH)


async def _end(session: "Session", turn: Turn, limits: Limits) -> None:
    def ended() -> bool:
        return session.turn is not turn

    if limits.idle is None and limits.turn is None:
        await session.until(lambda: ended() or turn.answered or turn.stopped is not None)
    else:
        await _attend_timed(session, turn, limits)
    if ended():
        return
    with anyio.move_on_after(limits.grace):
        await session.until(lambda: ended() or turn.answered)
    if ended():
        return
    if not turn.answered:
        await _kill(session, turn, limits)
        return
    if turn.wants_text:
        await _late_text(session, turn)
    with anyio.move_on_after(settle(session)):
        await session.until(ended)
    session.end_turn(turn)


async def _attend_timed(session: "Session", turn: Turn, limits: Limits) -> None:
    with anyio.move_on_after(limits.turn) as deadline:
        async with anyio.create_task_group() as tasks:
            if limits.idle is not None:
                tasks.start_soon(_watch_idle, session, turn, limits.idle)
            await session.until(
                lambda: session.turn is not turn or turn.answered or turn.stopped is not None
            )
            tasks.cancel_scope.cancel()
    if deadline.cancelled_caught:
        session.stop_turn(
            "timeout", f"the turn did not end within {limits.turn:g} s (turn_timeout)"
        )


async def _watch_idle(session: "Session", turn: Turn, seconds: float) -> None:
    """Looks four times an idle period, so that an update costs no look at the clock."""
    still = 0
    while still < 4:
        await anyio.sleep(seconds / 4)
        still = 0 if turn.stirred or session.waits_for_host else still + 1
        turn.stirred = False
    session.stop_turn("timeout", f"no sign of life for {seconds:g} s (idle_timeout)")


async def _late_text(session: "Session", turn: Turn) -> None:
    with anyio.move_on_after(LATE_TEXT):
        await session.until(lambda: session.turn is not turn or turn.visible)
        while session.turn is turn:
            turn.stirred = False
            with anyio.move_on_after(_QUIET) as quiet:
                await session.until(lambda: session.turn is not turn or turn.stirred)
            if quiet.cancelled_caught:
                return


async def _quiet(session: "Session", seconds: float) -> None:
    """What a turn still says must not count to the next one, which is not sent before the agent
    has been quiet for so long."""
    with anyio.move_on_after(_UNQUIET):
        while session.agent is not None and session.agent.death is None:
            strays = session.strays
            with anyio.move_on_after(seconds) as quiet:
                await session.until(lambda strays=strays: session.strays != strays)
            if quiet.cancelled_caught:
                return


async def _kill(session: "Session", turn: Turn, limits: Limits) -> None:
    """The agent did not answer the cancel: its end settles the turn."""
    agent = session.agent
    if agent is not None:
        await agent.stop(eof=0, term=min(1.0, limits.grace))
    if session.turn is turn:
        turn.fail(BridgeError("the agent was killed: it did not answer the cancel", code="timeout"))
        session.end_turn(turn)
