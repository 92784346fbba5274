"""Where agents are tried: the command, the clients that play against it, and what they have found.

Owns: the agent processes. One client and one session are shared by most checks, since agents can
take seconds to start; a client that died or still waits for something is replaced. Rule: what
cannot be found out because something more basic fails is `not tried`, with that reason.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from conformance import process
from conformance.agent.client import Client, Turn
from conformance.check import Broken, NotTried
from conformance.judge import Fault
from conformance.wire import Json, compact, mapping

SHOWN = 8
PATIENCE = 30.0
"""Seconds at least for what a check stands on: some agents start slowly."""
SETTLE = 0.05
"""How long a turn is given to show that it is over already."""
TOO_SOON = "the turn ended too soon; --slow-prompt TEXT is to keep it busy"


@dataclass(frozen=True)
class Options:
    """How this agent is made to do what the checks need."""

    prompt: str = "Answer with one word: hello."
    tool_prompt: str = (
        "Run the shell command `echo conformance` with your tool for it; say what it printed."
    )
    slow_prompt: str = "Count from 1 to 400 in words, one number a line."
    mode: str | None = None
    auth_method: str | None = None
    cwd: Path | None = None
    session_meta: Json = field(default_factory=dict[str, object])
    timeout: float = 20.0


class Lab:
    """One run of the suite."""

    def __init__(self, command: Sequence[str], options: Options, tasks: TaskGroup) -> None:
        self.options = options
        self.faults: list[Fault] = []
        self.clients: list[Client] = []
        self._command = list(command)
        self._tasks = tasks
        self._traffic: list[str] = []
        self._shared: Client | None = None
        self._session = ""
        self._past = ""
        self._own: list[Client] = []
        self.reasons: dict[str, str] = {}
        """What is known not to work, and how: what needs it is not tried."""
        self._turns: dict[str, Turn] = {}
        # The agent may still write into it when the run ends.
        self._directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.cwd = str(options.cwd or Path(self._directory.name).resolve())
        self.setup: Json = {}
        """The result of the shared session's session/new."""

    # For the runner

    def mark(self) -> int:
        return len(self._traffic)

    def since(self, mark: int) -> list[str]:
        return self._traffic[max(mark, len(self._traffic) - SHOWN) :]

    async def tidy(self) -> None:
        while self._own:
            self._end(self._own.pop())
        shared = self._shared
        if shared is not None and (shared.ended or shared.busy):
            self._shared, self._session, self._turns = None, "", {}
            self._end(shared)
        elif shared is not None:
            shared.policy = "allow_once"
            shared.held.clear()

    async def close(self) -> None:
        """Ends every process."""
        if self._shared is not None:
            self._own.append(self._shared)
            self._shared = None
        await self.tidy()

    def _end(self, client: Client) -> None:
        # In the background: some agents take seconds to end.
        self._tasks.start_soon(client.child.end)

    def dispose(self) -> None:
        self._directory.cleanup()

    # For the checks

    async def spawn(self) -> Client:
        """A new process, not yet initialized, for this check alone."""
        child = await process.start(self._command, self._tasks)
        client = Client(child, self.faults, self._traffic, self.options.timeout)
        self.clients.append(client)
        self._own.append(client)
        self._tasks.start_soon(client.run)
        return client

    async def fresh(self, version: int = 1, capabilities: Json | None = None) -> Client:
        """A new process, initialized and authenticated, for this check alone."""
        client = await self.spawn()
        with self._needs("initialize", client):
            await client.initialize(version, capabilities)
        method = self.options.auth_method
        if method is not None:
            with self._needs("authenticate", client):
                await client.request("authenticate", {"methodId": method})
        return client

    async def client(self) -> Client:
        """The shared one."""
        if self._shared is None or self._shared.ended:
            shared = await self.fresh()
            self._own.remove(shared)
            self._shared, self._session, self._turns = shared, "", {}
        return self._shared

    async def new_session(self, client: Client) -> Json:
        """A new session, in the mode that the options want; the result of session/new."""
        meta = self.options.session_meta
        with self._needs("session/new", client):
            result = await client.new_session(self.cwd, **({"_meta": meta} if meta else {}))
        if self.options.mode is not None:
            params = {"sessionId": result.get("sessionId"), "modeId": self.options.mode}
            with self._needs("session/set_mode", client):
                await client.request("session/set_mode", params)
        return result

    async def session(self) -> tuple[Client, str]:
        """The shared client and its session."""
        client = await self.client()
        if not self._session:
            self.setup = await self.new_session(client)
            self._session = str(self.setup.get("sessionId"))
        return client, self._session

    async def turn(self) -> Turn:
        """An ordinary turn in the shared session, ended; the same one for all checks."""
        return await self._known_turn("prompt", self.options.prompt)

    async def tool_turn(self) -> Turn:
        """A turn that uses a tool, everything allowed; the same one for all checks."""
        turn = await self._known_turn("tool-prompt", self.options.tool_prompt)
        if not turn.of_kind("tool_call", "tool_call_update"):
            raise NotTried("it called no tool; --tool-prompt TEXT is to make it call one")
        return turn

    async def _known_turn(self, name: str, text: str) -> Turn:
        client, session = await self.session()
        if name not in self._turns:
            with self._needs(f"session/prompt (--{name})", client):
                turn = await client.prompt(session, text)
                await turn.reason()
            self._turns[name] = turn
        return self._turns[name]

    async def past_session(self) -> str:
        """A session that has had a turn, in a process that has ended; the same one for all."""
        if not self._past:
            client = await self.fresh()
            session = str((await self.new_session(client)).get("sessionId"))
            await self.refuse_error(await client.prompt(session, self.options.prompt))
            await self.leave(client)
            self._past = session
        return self._past

    async def leave(self, client: Client) -> None:
        """Ends a process in the way that it likes, and waits until it has ended."""
        await client.child.close_stdin()
        await client.child.exit_code(self.options.timeout)

    async def slow_turn(self, client: Client, session: str) -> Turn:
        """A turn that runs: something of it has come, its response has not."""
        turn = await client.begin(session, self.options.slow_prompt)
        call = turn.call
        await client.wait(lambda: call.message or turn.updates, "neither update nor response")
        # What the agent has written in one go is read first.
        with anyio.move_on_after(SETTLE):
            await call.answer()
        if call.message is not None:
            await self.refuse_error(turn)
            raise NotTried(TOO_SOON)
        return turn

    async def refuse_error(self, turn: Turn) -> None:
        """Raises NotTried where the turn failed: other checks tell that."""
        error = (await turn.call.answer()).get("error")
        if error is not None:
            raise NotTried(f"session/prompt fails: {compact(error)[:200]}")

    def advertises(self, client: Client, *path: str) -> None:
        """Raises NotTried unless the agent has that capability: true, or an object."""
        value: object = client.agent.get("agentCapabilities")
        for name in path:
            value = mapping(value).get(name)
        if value is None or value is False:
            raise NotTried(f"agentCapabilities.{'.'.join(path)} is not advertised")

    def _needs(self, what: str, client: Client) -> "_Needs":
        return _Needs(what, client, self.reasons)


class _Needs:
    """Inside it, a fault becomes the reason why others are not tried, from then on at once; and
    there is more time, since it is not this that is being tried."""

    def __init__(self, what: str, client: Client, reasons: dict[str, str]) -> None:
        self._what, self._client, self._reasons = what, client, reasons
        self._timeout = client.timeout

    def __enter__(self) -> None:
        if self._what in self._reasons:
            raise NotTried(self._reasons[self._what])
        self._client.timeout = max(self._timeout, PATIENCE)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._client.timeout = self._timeout
        if isinstance(error, Broken):
            reason = self._reasons[self._what] = f"{self._what} fails: {error}"
            raise NotTried(reason) from None
