"""Closing a session: its turn, its ACP session, its agent, in that order and each bounded.

Owns: how long each step may take. Called by `bridge.session.operations` (close) and by
`bridge.session.daemon` (shutdown, signals, end of input).
"""

from typing import Any

import anyio
import msgspec

from bridge.agent.supervisor import Agent
from bridge.errors import BridgeError, RequestFailed
from bridge.log import log
from bridge.rpc.connection import ConnectionEnded
from bridge.session.session import Session
from bridge.wire import codec


class Graces(msgspec.Struct, frozen=True):
    """Seconds for each step: the turn's end after a cancel, the answer to session/close, the exit
    after the end of stdin, the exit after TERM. KILL follows."""

    cancel: float
    close: float
    eof: float
    term: float

    @classmethod
    def within(cls, close_grace: float) -> "Graces":
        """For an orderly close: 6.5 s in all with the default close_grace of 5 s, never more than
        1.5 s over it. claude needs 0.2 s after session/close, codex 2 s after the end of its stdin
        (measured)."""
        whole = min(1.3 * close_grace, close_grace + 1.5)
        return cls(*(whole / 13 * share for share in (3, 3, 5, 2)))


HURRIED = Graces(cancel=0.4, close=0.6, eof=0.7, term=0.5)
"""After a signal everything must be gone within 4 s (HOST_PROTOCOL §5)."""


async def close(session: Session, graces: Graces) -> dict[str, Any]:
    """Ends a session; gives the `_meta` of the agent's answer to session/close, or {}."""
    metadata: dict[str, Any] = {}
    with anyio.CancelScope(shield=True):
        await _end_turns(session, graces)
        agent, session_id = session.agent, session.session_id
        if agent is not None:
            if agent.death is None and session_id is not None:
                metadata = await _close_session(agent, session_id, graces.close)
            await session.services.release()
            if session_id is not None:
                agent.client.forget(session_id)
            if agent.client.sessions == 0 or agent.death is not None:
                await agent.stop(eof=graces.eof, term=graces.term)
        session.finish()
    return metadata


async def _end_turns(session: Session, graces: Graces) -> None:
    session.begin_close()
    turn = session.turn
    if turn is not None:
        session.stop_turn("cancelled")
        with anyio.move_on_after(graces.cancel):
            await session.until(lambda: session.turn is not turn)


async def _close_session(agent: Agent, session_id: str, seconds: float) -> dict[str, Any]:
    if not agent.client.capabilities.session("close"):
        return {}
    with anyio.move_on_after(seconds) as limit:
        try:
            result = await agent.client.start("session/close", {"sessionId": session_id}).result()
        except (RequestFailed, ConnectionEnded, codec.JSONError, BridgeError) as error:
            log.info("session/close of %r: %s", session_id, error)
            return {}
        return codec.mapping((codec.mapping(result) or {}).get("_meta")) or {}
    if limit.cancelled_caught:
        log.info("session/close of %r was not answered within %g s", session_id, seconds)
    return {}
