"""The sessions of the process: made, opened again, forked, closed.

Owns: which sessions are open here, and what goes into one (its tools, its servers, its system
message). Rule: a session becomes open only once everything in it works; what fails on the way is
undone. Called by `bridge.loop_agent.agent`.
"""

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

import msgspec
from anyio.abc import TaskGroup

from bridge.io.family import Family
from bridge.loop_agent.failures import invalid_params, invalid_request, session_not_found
from bridge.loop_agent.mcp_servers import McpServers
from bridge.loop_agent.prompt import system_text
from bridge.loop_agent.session import Session
from bridge.loop_agent.state import INTERRUPTED, State, tool_result
from bridge.loop_agent.store import Store
from bridge.loop_agent.toolbox import DuplicateTool, Tool, Toolbox
from protocol_schemas.agent_requests import McpServer, NewSession, OpenSession, SystemPrompt
from protocol_schemas.session_file import AnyLine, Head, Message

LocalTool = Literal["bash", "edit", "search"]


@dataclass(frozen=True)
class Setup:
    """What every session of this agent gets. `mode`: the permission mode it begins in."""

    tools: tuple[LocalTool, ...] = ()
    mode: str = "ask"
    system_prompt: str = ""
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))


class Sessions:
    """`family`: of all processes that sessions start; `group`: where MCP connections live."""

    def __init__(self, store: Store, setup: Setup, family: Family, group: TaskGroup) -> None:
        self._store = store
        self._setup = setup
        self._group = group
        self._family = family
        self._open: dict[str, Session] = {}

    def find(self, session_id: str) -> Session:
        """An open session; raises RequestFailed (-32002)."""
        session = self._open.get(session_id)
        if session is None:
            raise session_not_found(session_id)
        return session

    def get(self, session_id: str) -> Session | None:
        return self._open.get(session_id)

    async def new(self, params: NewSession) -> Session:
        check_cwd(params.cwd)
        head = Head(_new_id(), params.cwd, _now(), system=self._system(params.system_prompt))
        tools, servers = await self._tools(params.cwd, params.mcp_servers)
        return await self._made([head], tools, servers)

    async def open(self, params: OpenSession) -> Session:
        """For session/load and session/resume: the session as it stands on disk."""
        check_cwd(params.cwd)
        there = self._open.get(params.session_id)
        if there is not None and there.turn is not None:
            raise invalid_request(f"session {params.session_id!r} is running a turn")
        self._store.check(params.session_id)
        tools, servers = await self._tools(params.cwd, params.mcp_servers or ())
        try:
            await self.close(params.session_id)
            lines, file = self._store.open(params.session_id)
            session = Session(self._state(lines), file, tools, servers)
            head = self._moved(session.state.head, params)
            for line in [head, *repairs(session.state)]:
                session.record(line)
        except BaseException:
            await servers.close()
            raise
        self._open[params.session_id] = session
        return session

    async def fork(self, params: OpenSession) -> Session:
        check_cwd(params.cwd)
        lines = self._store.read(params.session_id)
        state = self._state(lines)
        head = msgspec.structs.replace(
            self._moved(state.head, params), id=_new_id(), created=_now(), parent=state.head.id
        )
        rest = [line for line in lines if not isinstance(line, Head)]
        lines = [head, *rest, *repairs(state)]
        tools, servers = await self._tools(params.cwd, params.mcp_servers or ())
        return await self._made(lines, tools, servers)

    async def _made(self, lines: list[AnyLine], tools: Toolbox, servers: McpServers) -> Session:
        try:
            file = self._store.create(lines)
        except BaseException:
            await servers.close()
            raise
        session = Session(self._state(lines), file, tools, servers)
        self._open[session.id] = session
        return session

    def _state(self, lines: list[AnyLine]) -> State:
        head, *rest = lines
        assert isinstance(head, Head)
        return State(head, rest, mode=self._setup.mode)

    def _moved(self, head: Head, params: OpenSession) -> Head:
        """The head, for the cwd and the instructions the session is opened with this time."""
        system = head.system
        if params.system_prompt is not None:
            system = self._system(params.system_prompt)
        return msgspec.structs.replace(head, cwd=params.cwd, system=system)

    def _system(self, given: SystemPrompt | None) -> str:
        """The system message: the agent's own instructions, the client's, or both."""
        own = self._setup.system_prompt
        if given is None:
            return own
        theirs = system_text(given.content)
        match given.mode:
            case "override":
                return theirs
            case "append":
                return f"{own}\n\n{theirs}" if own else theirs
            case other:
                raise invalid_params(f"systemPrompt.mode {other!r} is neither append nor override")

    async def _tools(self, cwd: str, given: Sequence[McpServer]) -> tuple[Toolbox, McpServers]:
        """Local tools first, then those of the servers, connected. Raises RequestFailed."""
        toolbox = Toolbox()
        servers = McpServers(given, cwd, self._family, self._group)
        try:
            for name in self._setup.tools:
                toolbox.add([self._local(name, cwd)], "the agent itself")
            await servers.add_tools(toolbox)
        except DuplicateTool as error:
            await servers.close()
            raise invalid_params(str(error)) from None
        except BaseException:
            await servers.close()
            raise
        return toolbox, servers

    def _local(self, name: LocalTool, cwd: str) -> Tool:
        # Imported here: an agent without local tools starts no processes.
        match name:
            case "bash":
                from bridge.loop_agent.tools.bash import Bash

                return Bash(cwd, self._family, self._setup.environment)
            case "edit":
                from bridge.loop_agent.tools.edit import Edit

                return Edit(cwd)
            case "search":
                from bridge.loop_agent.tools.search import Search

                return Search(cwd, self._family)

    async def close(self, session_id: str) -> None:
        """Ends a session's turn and connections; one that is not open is closed already."""
        session = self._open.pop(session_id, None)
        if session is not None:
            await session.end_turn()
            await session.servers.close()

    async def close_all(self) -> None:
        for session_id in list(self._open):
            await self.close(session_id)


def repairs(state: State) -> list[AnyLine]:
    """Results for the calls that a process left open when it died."""
    return [Message(tool_result(call, INTERRUPTED)) for call in state.unanswered()]


def check_cwd(cwd: str) -> None:
    if not os.path.isabs(cwd):
        raise invalid_params(f"cwd must be an absolute path, not {cwd!r}")


def _new_id() -> str:
    return f"sess_{uuid.uuid4().hex}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
