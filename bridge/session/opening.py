"""Opening a session: a new ACP session, a restored one, a fork; each bounded by `start_timeout`.

Owns: what becomes of an agent whose session could not be made, and of the session's name. Rules:
the session is adopted by the agent's reader, right when the response passes, and announced before
anything that follows it; where a restore or a fork failed, no prompt starts afresh in its place.
Called by `bridge.session.operations`, by `bridge.once`, and for a first prompt by the session.
"""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
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


_AGENT_S = (
    *("command", "agent", "agent_options", "cwd", "env", "protocol_version", "model"),
    *("client_capabilities", "client_services", "model_proxy"),
)
"""The members of a config that an agent is started and greeted with."""


class Unopened(msgspec.Struct):
    """A session that could not be opened. `config`: of the try, whose agent may wait for
    `authenticate`; `owed`: why a prompt must not begin afresh, where the host wanted an old one."""

    config: Config
    owed: BridgeError | None = None


async def begin(session: "Session", config: Config) -> None:
    """`create` for a prompt; raises BridgeError where a fresh session is not what was asked for."""
    if (error := owed(session)) is not None:
        raise error
    await create(session, config)


def owed(session: "Session") -> BridgeError | None:
    """What answers a prompt while the host waits for a session that could not be restored
    or forked."""
    error = None if session.unopened is None else session.unopened.owed
    if error is None:
        return None
    first = "authenticate, then " if error.code == "auth_required" else ""
    return BridgeError(
        f"{error.message}; nothing was sent to session {session.name!r}: "
        f"{first}load, resume or fork it again, or open it for a fresh one",
        code=error.code,
        origin=error.origin,
        data=error.data,
        extra=error.extra,
    )


async def create(session: "Session", config: Config, announce: Announce = unsaid) -> None:
    """`session/new` on an agent of its own; raises BridgeError. `announce` gets the result of
    `open` before anything else of the session reaches the host."""
    config = await _prepared(session, config)

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
    config = await _prepared(session, config)

    async def make(agent: Agent, done: Done) -> None:
        await session.launcher.restore(method, agent, config, session_id, session, done)

    session.replaying = method != "session/resume"
    try:
        with _owing(session, config):
            await _open(session, config, make, announce, first=False)
    finally:
        session.replaying = False


async def fork(
    session: "Session", source: "Session", cwd: str | None, announce: Announce = unsaid
) -> None:
    """`session/fork` of another session, on its agent."""
    config = msgspec.structs.replace(source.config, cwd=cwd or source.config.cwd)
    _require_unopened(session)
    if session.agent is not None:
        await session.agent.stop(eof=0.3, term=0.5)
    seconds = _start_timeout(session, config)
    with _owing(session, config):
        session.configure(config)
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


@contextmanager
def _owing(session: "Session", config: Config) -> Generator[None]:
    """What fails in here leaves the session owed, and no prompt makes a fresh one in its place."""
    try:
        yield
    except BridgeError as error:
        session.unopened = Unopened(config, error)
        raise


def _require_unopened(session: "Session") -> None:
    if session.state in ("idle", "running"):
        raise invalid_request(f"session {session.name!r} is open already")


async def _prepared(session: "Session", config: Config) -> Config:
    """The config that a session is opened with, whole. An agent that waits for `authenticate`
    serves the next try, too, which need not name it again; one that names another ends it."""
    _require_unopened(session)
    agent, tried = session.agent, session.unopened
    session.unopened = None
    if agent is None or agent.death is not None or tried is None:
        return config
    whole = config if config.command or config.agent else _over(tried.config, config)
    if any(getattr(whole, name) != getattr(tried.config, name) for name in _AGENT_S):
        await agent.stop(eof=0.3, term=0.5)
    return whole


def _over(held: Config, given: Config) -> Config:
    """What was given, and what was held where nothing else was given."""
    usual = Config()
    more = {
        name: value
        for name in Config.__struct_fields__
        if (value := getattr(given, name)) != getattr(usual, name)
    }
    return msgspec.structs.replace(held, **more)


async def _open(
    session: "Session",
    config: Config,
    make: Callable[[Agent, Done], Awaitable[None]],
    announce: Announce,
    *,
    first: bool,
) -> None:
    seconds = _start_timeout(session, config)
    await session.services.release()
    agent, dead = session.agent, None
    if agent is not None and agent.death is not None:
        agent, dead = None, (agent, session.session_id)
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
        if not _adopted(session):
            await session.services.release()
        if isinstance(error, BridgeError) and error.code == "auth_required":
            # It stays, so that `authenticate` can reach it before the next try.
            session.agent, session.unopened = agent, Unopened(config)
        elif not _adopted(session):
            if agent is not None:
                await agent.stop(eof=0.3, term=0.5)
            if dead is not None:
                # What it was stays true: no prompt brings it back.
                session.agent, session.session_id = dead
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
