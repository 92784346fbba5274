"""One agent behind a daemon of its own, and the servers that it reaches: what a scenario gets."""

import contextlib
import json
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.e2e.matrix.agents import Agent
from tests.peers.host import Host
from tests.peers.processes import marked, wait_until
from tests.peers.servers import Server, mcp_server, model_server

Json = dict[str, Any]
ECHO = 'USE_TOOL echo {"message": "hi"}'


class NotOffered(Exception):
    """The agent did not advertise what the scenario needs; the words say what."""


class NotRun(Exception):
    """The machine does not let the scenario run; the words say why."""


class Room:
    """The MCP server that all desks share, for as long as the context lasts."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._stack = contextlib.ExitStack()
        self._desks = 0

    @cached_property
    def tools(self) -> Server:
        return self._stack.enter_context(mcp_server(self.place / "mcp.ndjson"))

    def desk(self, agent: Agent) -> "Desk":
        self._desks += 1
        return Desk(self, agent, self.place / f"{agent.name}-{self._desks}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()


class Desk:
    """Starts what it is asked for when it is asked for it; `end` is part of every scenario."""

    def __init__(self, room: Room, agent: Agent, place: Path) -> None:
        self.room, self.agent, self.place = room, agent, place
        self.work = place / "work"
        self.work.mkdir(parents=True)
        self.strict = ""
        """What the model refuses (bridge.scripted.chat.refusal)."""
        self.arguments: list[str] = []
        """The daemon's."""
        self._stack = contextlib.ExitStack()
        self._hosts: list[Host] = []
        self._own: frozenset[int] = frozenset()
        self._before = 0

    # What is around the agent.

    @cached_property
    def model(self) -> Server:
        """A model of this desk's own: it keeps in mind which failures it has shown."""
        log = self.place / "model.ndjson"
        return self._stack.enter_context(model_server(log, strict=self.strict))

    @cached_property
    def tools(self) -> Server:
        tools = self.room.tools
        self._before = len(tools.calls())
        return tools

    def refusing(self) -> None:
        """From now on the tools are those of a server that turns its first call away."""
        log = self.place / "mcp.ndjson"
        self.tools = self._stack.enter_context(mcp_server(log, "tiny", "--refuse", "1"))

    @property
    def host(self) -> Host:
        return self._hosts[-1] if self._hosts else self.again()

    def again(self) -> Host:
        """A new daemon; one that there was has ended well."""
        self.end()
        home = self.agent.environment(self.place / "home") | {"TMPDIR": str(self.place)}
        host = Host(self.work, *self.arguments, environment=home)
        self._hosts.append(self._stack.enter_context(host))
        host.hello()
        self._own = frozenset(marked(host.marker))
        return host

    def end(self) -> None:
        """The daemon's orderly end, with nothing left of it."""
        if self._hosts and self._hosts[-1].process.poll() is None:
            self._hosts[-1].shutdown()

    # What a scenario does.

    @property
    def config(self) -> Json:
        config = self.agent.config(self.model.url)
        config |= {"mcp_urls": {"tiny": self.tools.url}, "start_timeout": self.agent.patience}
        if "agent" in config:
            config["agent_options"] = {"state": str(self.place / "state")}
        return config

    def ask(self, operation: str, **fields: Any) -> Json:
        """Any operation; raises NotOffered where the agent did not advertise it."""
        response = self.host.call(operation, self.agent.patience, **fields)
        if response.get("code") == "unsupported":
            raise NotOffered(response["error"])
        assert response["ok"] is True, self._words(response)
        return response["result"]

    def open(self, **more: Any) -> Json:
        return self.ask("open", config=self.config | more)

    def start(self, *contents: Any, **more: Any) -> int | None:
        settings = self.config | more
        command = settings.pop("command", None)
        return self.host.start(command, *contents, **settings)

    def response(self, request: int | None) -> Json:
        return self.host.answer(request, self.agent.patience)

    def turn(self, *contents: Any, **more: Any) -> Json:
        """One turn that must succeed; the whole response."""
        response = self.response(self.start(*contents, **more))
        assert response["ok"] is True, self._words(response)
        return response

    def says(self, word: str) -> Json:
        """A turn in which the model says the word, and so does the agent."""
        response = self.turn(f"SAY {word}")
        reply = response["result"]["reply"].strip()
        assert reply == word, f"{reply!r} in place of {word!r}"
        return response

    def _words(self, response: Json) -> str:
        return f"{response.get('code')}: {response.get('error')}"

    # What reached the servers.

    def calls(self) -> list[Json]:
        """The tool calls that reached the MCP server from this desk."""
        return self.tools.calls()[self._before :]

    def asked(self, holding: str = "") -> list[Json]:
        """The requests that reached the model on the agent's wire, those that hold the text."""
        every = self.model.bodies(self.agent.path)
        return [request for request in every if holding in json.dumps(request["body"])]

    def left(self, holding: str) -> bool:
        """Whether the agent leaves the model's answer to the turn's request that holds the text."""
        [request, *_] = [r for r in self.asked(holding) if r["body"].get("tools")]
        return wait_until(lambda: self.model.outcome(request["number"]) == "left", 10)

    def children(self) -> list[int]:
        """The processes of the daemon's agents."""
        return [pid for pid in marked(self.host.marker) if pid not in self._own]

    def all_gone(self) -> bool:
        return wait_until(lambda: not self.children(), 10)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()
