"""Where daemons are tried: the command, the hosts that play against it, the agent that it starts.

Owns: the daemon processes. Each generation has one that most of its checks share; a daemon that
died or owes a response is replaced. Generation C names a session anew for each check.
"""

import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from anyio.abc import TaskGroup

from conformance import process
from conformance.check import Suite
from conformance.daemon.host import Host, ok, result
from conformance.judge import Fault
from conformance.wire import Json

PEER = Path(__file__).with_name("peer.py")
SHOWN = 8
PATIENCE = 30.0
"""Seconds at least for a daemon's start."""
EVENTS = ["update", "permission", "turn", "exit", "stderr", "mode", "notice", "mcp", "model"]


def agent(*options: str) -> list[str]:
    """The command of the agent that daemons are to start."""
    return [sys.executable, "-I", "-S", str(PEER), *options]


def config(*contents: Any, command: list[str] | None = None, **more: Any) -> Json:
    """A prompt's config in generations B and C."""
    return {
        "command": command or agent(),
        "user_contents": list(contents),
        "mcp_urls": {},
        "mcp_headers": {},
        "system_prompt": "",
        "session_meta": {},
        "client_capabilities": {},
        "tool_interception": None,
        **more,
    }


def old_config(*messages: Json, command: list[str] | None = None, **more: Any) -> Json:
    """A prompt's config in generation A."""
    base: Json = {"command": command or agent(), "messages": list(messages), "mcp_urls": {}}
    return {**base, "system_prompt": "", "session_path": None, "session_meta": {}, **more}


class Lab:
    """One run of the suite."""

    def __init__(self, command: Sequence[str], timeout: float, tasks: TaskGroup) -> None:
        self.timeout = timeout
        self.faults: list[Fault] = []
        self._command = list(command)
        self._tasks = tasks
        self._traffic: list[str] = []
        self._shared: dict[str, Host] = {}
        self._own: list[Host] = []
        self._names = count(1)

    # For the runner

    def mark(self) -> int:
        return len(self._traffic)

    def since(self, mark: int) -> list[str]:
        return self._traffic[max(mark, len(self._traffic) - SHOWN) :]

    async def tidy(self) -> None:
        for generation, host in list(self._shared.items()):
            if host.ended or host.busy:
                self._own.append(self._shared.pop(generation))
        while self._own:
            self._tasks.start_soon(self._own.pop().child.end)

    async def close(self) -> None:
        self._own += self._shared.values()
        self._shared.clear()
        await self.tidy()

    # For the checks

    async def fresh(self, generation: str = "B", framing: str = "packets") -> Host:
        """A daemon for this check alone."""
        child = await process.start(self._command, self._tasks)
        host = Host(child, generation, framing, self.faults, self._traffic, self.timeout)
        self._own.append(host)
        self._tasks.start_soon(host.run)
        return host

    async def host(self, generation: str) -> Host:
        """The shared daemon of a generation; C has said hello."""
        if generation not in self._shared:
            host = await self.fresh(generation)
            if generation == "C":
                host.timeout = max(self.timeout, PATIENCE)
                await self.hello(host)
                host.timeout = self.timeout
            self._own.remove(host)
            self._shared[generation] = host
        return self._shared[generation]

    async def hello(self, host: Host) -> Json:
        client = {"name": "conformance", "version": "1"}
        return await host.good("hello", protocol=1, client=client, events=EVENTS)

    def name(self) -> str:
        """A session name that was not used before."""
        return f"session-{next(self._names)}"

    async def reply(self, *contents: Any, **more: Any) -> str:
        """The reply to a prompt that must succeed, in generation B."""
        host = await self.host("B")
        response = ok(await host.call("prompt", config=config(*contents, **more)))
        return str(result(response).get("reply"))


SUITE: Suite[Lab] = Suite("daemon")
"""The list that the modules beside this one add their checks to; `suite` puts them in order."""
