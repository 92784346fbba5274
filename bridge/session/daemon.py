"""All sessions of one daemon, from the first to the end of the last.

Owns: the sessions by name, and the orderly end of them all. Rule: however the daemon ends, each
open request is answered and each agent is gone before `shutdown` returns.
Made by `bridge.app`; `bridge.session.operations` works on it.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from bridge.agent.supervisor import Agent
from bridge.errors import invalid_request
from bridge.host.server import HostServer
from bridge.io.process import Family
from bridge.session import closing
from bridge.session.attendance import grace_of
from bridge.session.closing import HURRIED, Graces
from bridge.session.launcher import Launcher
from bridge.session.observers import UNOBSERVED, Observers
from bridge.session.proxies import DIRECT, Policy, Proxies
from bridge.session.session import Session


class Daemon:
    """The sessions of one host."""

    def __init__(
        self,
        group: TaskGroup,
        host: HostServer,
        *,
        family: Family | None,
        environment: Mapping[str, str],
        write_stderr: Callable[[bytes], None],
        policy: Policy = DIRECT,
        observers: Observers = UNOBSERVED,
    ) -> None:
        self.host = host
        self.sessions: dict[str, Session] = {}
        self.native = False
        """Whether the host has said hello (generation C)."""
        self.started = anyio.current_time()
        self.counters = {"turns": 0, "sessions": 0}
        self.ending = False
        self._group = group
        self._write_stderr = write_stderr
        self._note = observers.note
        family = family or Family()
        self.proxies = Proxies(
            group,
            family=family,
            environment=environment,
            told=self._on_proxied,
            alive=self._on_life,
            policy=policy,
            observers=observers,
        )
        self._launcher = Launcher(
            group,
            family=family,
            environment=environment,
            proxies=self.proxies,
            on_stderr=self._on_stderr,
            on_exit=self._on_exit,
            room=host.room,
            observers=observers,
        )

    def session(self, name: str) -> Session:
        """The session of that name; made if there is none."""
        session = self.sessions.get(name)
        if session is None:
            session = Session(
                name,
                self.host,
                self._launcher,
                native=lambda: self.native,
                models=self.proxies,
            )
            self.sessions[name] = session
            self.counters["sessions"] += 1
            self._group.start_soon(session.queue.run)
        return session

    def known(self, name: str) -> Session:
        """The session of that name; raises BridgeError(invalid_request) if there is none."""
        session = self.sessions.get(name)
        if session is None:
            raise invalid_request(f"there is no session {name!r}: open it first")
        return session

    async def close(self, session: Session, graces: Graces | None = None) -> dict[str, Any]:
        """Closes a session; its name is free again. May be called again meanwhile."""
        grace = grace_of(session.config, session.config)
        metadata = await closing.close(session, graces or Graces.within(grace))
        if self.sessions.get(session.name) is session:
            del self.sessions[session.name]
            await self.abandon(session)
        return metadata

    async def abandon(self, session: Session) -> None:
        """Lets go of what was made for a session that is not, or no longer."""
        self.proxies.forget(session.name)
        await self._launcher.release(session.name)

    async def shutdown(
        self, graces: Graces | None = None, *, longest: float = math.inf
    ) -> dict[str, Any]:
        """Closes all sessions side by side; gives the close metadata of the default one.

        `longest`: seconds of close_grace that are granted at most."""
        self.ending = True
        found: dict[str, dict[str, Any]] = {}

        async def one(session: Session) -> None:
            grace = min(grace_of(session.config, session.config), longest)
            found[session.name] = await self.close(session, graces or Graces.within(grace))

        async with anyio.create_task_group() as tasks:
            for session in self.sessions.values():
                tasks.start_soon(one, session)
        return found.get("", {})

    async def hurry(self, *, eof: float, term: float) -> None:
        """Shortens what graces the agents still have (seconds)."""
        async with anyio.create_task_group() as tasks:
            for session in self.sessions.values():
                if session.agent is not None:
                    tasks.start_soon(partial(session.agent.stop, eof=eof, term=term))

    async def end(self, *, hurried: bool) -> None:
        """`shutdown` without a host that waits for it; hurried after a signal."""
        await self.shutdown(HURRIED if hurried else None)
        self.proxies.end()

    def _on_proxied(self, kind: str, name: str, fields: dict[str, Any]) -> None:
        if kind == "mcp":
            # An exchange's end is among what the recorder sees of it.
            self._note("mcp", "attempt", fields, session=name)
        session = self.sessions.get(name)
        turn = None if session is None or session.turn is None else session.turn.number
        self.host.event(kind, name, turn, fields)

    def _on_life(self, name: str) -> None:
        session = self.sessions.get(name)
        if session is not None and session.turn is not None:
            session.turn.stirred = True

    def _on_stderr(self, name: str, data: bytes) -> None:
        self._write_stderr(data)
        session = self.sessions.get(name)
        if session is not None and self.host.wants("stderr"):
            session.event("stderr", {"text": session.stderr.decode(data)})

    def _on_exit(self, agent: Agent) -> None:
        status = agent.process.status
        fields = {
            "exit_code": status.code if status else None,
            "signal": status.signal if status else None,
            "stderr": agent.process.stderr_tail(),
        }
        self._note("process", "exit", {**fields, "pid": agent.process.pid}, session=agent.name)
        for session in self.sessions.values():
            if session.agent is agent:
                session.event("exit", fields)
                # Nobody is left to ask for what they do.
                self._group.start_soon(session.services.release)
