"""A session that is open in this process.

Owns: its state and the file behind it, its tools, its MCP servers, the turn that runs in it.
Rule: one turn at a time; what is recorded is on disk before it is acted on.
Made by `bridge.loop_agent.sessions`, used by everything a turn does.
"""

from typing import TYPE_CHECKING

from bridge.loop_agent.failures import invalid_params
from bridge.loop_agent.mcp_servers import McpServers
from bridge.loop_agent.state import State
from bridge.loop_agent.store import SessionFile
from bridge.loop_agent.toolbox import Toolbox
from protocol_schemas.session_file import AnyLine, Mode

if TYPE_CHECKING:
    from bridge.loop_agent.turn import Turn


MODES: list[dict[str, str]] = [
    {"id": "ask", "name": "Ask", "description": "Asks before each use of a local tool"},
    {"id": "auto", "name": "Auto", "description": "Uses local tools without asking"},
]


class Session:
    """`turn`: the one that runs, if any."""

    def __init__(
        self, state: State, file: SessionFile, tools: Toolbox, servers: McpServers
    ) -> None:
        self.state = state
        self.tools = tools
        self.servers = servers
        self.turn: Turn | None = None
        self._file = file

    def set_mode(self, mode: str) -> None:
        """Raises RequestFailed (-32602) for a mode there is not."""
        known = [mode["id"] for mode in MODES] if self.asks else []
        if mode not in known:
            raise invalid_params(f"no mode {mode!r}; there is: {', '.join(known) or 'none'}")
        self.record(Mode(mode))

    @property
    def asks(self) -> bool:
        """Whether there are tools that ask for permission, so that the mode makes a difference."""
        return any(tool.spec.asks for tool in self.tools)

    @property
    def id(self) -> str:
        return self.state.head.id

    def record(self, line: AnyLine) -> None:
        """Keeps a line; raises RequestFailed if the disk will not take it."""
        self._file.append(line)
        self.state.apply(line)

    async def end_turn(self) -> None:
        """Cancels the turn that runs, if any, and waits for its end."""
        if self.turn is not None:
            self.turn.cancel()
            await self.turn.ended.wait()
