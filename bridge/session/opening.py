"""Opening a session: a new ACP session, a restored one, a fork; each bounded by `start_timeout`.

Owns: what becomes of an agent whose session could not be made. Rule: the session is adopted by the
agent's reader, right when the response passes, and announced before anything that follows it.
Called by `bridge.session.operations`, by `bridge.once`, and for a first prompt by the session.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
import msgspec

from bridge.agent.supervisor import Agent
from bridge.errors import BridgeError, invalid_request
from bridge.session.faults import failures
from bridge.session.jobs import Announce, unsaid
from bridge.session.launcher import LEGACY_START_TIMEOUT, START_TIMEOUT, Done
from protocol_schemas.host import Config

if TYPE_CHECKING:
    from bridge.session.session import Session


async def create(session: "Session", config: Config, announce: Announce = unsaid) -> None:
    """`session/new` on an agent of its own; raises BridgeError. `announce` gets the result of
    `open` before anything else of the session reaches the host."""

    async def make(agent: Agent, done: Done) -> None:
        await session.launcher.new(agent, config, session, done)

    await _open(session, config, make, announce, first=True)
    await _set_mode(session)


async def restore(
    session: "Session",
    method: str | None,
    session_id: str,
    config: Config,
    announce: Announce = unsaid,
) -> None:
    """`session/load` or `session/resume` (None: what the agent can); what is replayed is marked
    and never output."""

    async def make(agent: Agent, done: Done) -> None:
        await session.launcher.restore(method, agent, config, session_id, session, done)

    session.replaying = method != "session/resume"
    try:
        await _open(session, config, make, announce, first=False)
    finally:
        session.replaying = False


async def fork(
    session: "Session", source: "Session", cwd: str | None, announce: Announce = unsaid
) -> None:
    """`session/fork` of another session, on its agent."""
    config = msgspec.structs.replace(source.config, cwd=cwd or source.config.cwd)
    session.configure(config)
    seconds = _start_timeout(session, config)
    with anyio.move_on_after(seconds):
        await session.launcher.fork(
            source.living(),
            source.session_id or "",
            config,
            session,
            lambda opened: session.adopt(opened, config, announce, first=False),
        )
    if _adopted(session):
        return
    raise BridgeError(
        f"the agent did not answer session/fork within {seconds:g} s (start_timeout)",
        code="timeout",
        origin="agent",
    )


async def _open(
    session: "Session",
    config: Config,
    make: Callable[[Agent, Done], Awaitable[None]],
    announce: Announce,
    *,
    first: bool,
) -> None:
    if session.state in ("idle", "running"):
        raise invalid_request(f"session {session.name!r} is open already")
    seconds = _start_timeout(session, config)
    await session.services.release()
    agent = session.agent if session.agent is not None and session.agent.death is None else None
    session.agent, session.session_id = None, None
    session.opening = True
    began = anyio.current_time()
    try:
        with anyio.move_on_after(seconds) as limit:
            session.configure(config)
            if agent is None:
                native = session.native()
                agent = await session.launcher.start(
                    session.name, config, native=native, limit=limit
                )
            await make(agent, lambda opened: session.adopt(opened, config, announce, first=first))
        if _adopted(session):
            # Also where the time was up in the moment in which the reader adopted it.
            return
        raise BridgeError(
            f"the agent was not ready within {round(limit.deadline - began, 3):g} s "
            "(start_timeout) and was stopped",
            code="timeout",
            origin="agent",
        )
    except BaseException as error:
        if isinstance(error, BridgeError) and error.code == "auth_required":
            # It stays, so that `authenticate` can reach it before the next try.
            session.agent = agent
        elif agent is not None and not _adopted(session):
            await agent.stop(eof=0.3, term=0.5)
        raise
    finally:
        session.opening = False


async def _set_mode(session: "Session") -> None:
    """The mode that the agent's profile wants for a new session; without it, it must not run."""
    profile = None if session.opened is None else session.opened.profile
    if profile is None or profile.session.mode is None:
        return
    agent, mode = session.living(), profile.session.mode
    try:
        with failures(agent, "session/set_mode"):
            params = {"sessionId": session.session_id, "modeId": mode}
            await agent.client.start("session/set_mode", params).result()
    except BridgeError as error:
        error.message = f"the mode {mode!r} could not be set: {error.message}"
        await agent.stop(eof=0.3, term=0.5)
        raise


def _start_timeout(session: "Session", config: Config) -> float:
    if config.start_timeout is not None:
        return config.start_timeout
    return START_TIMEOUT if session.native() else LEGACY_START_TIMEOUT


def _adopted(session: "Session") -> bool:
    return session.session_id is not None
