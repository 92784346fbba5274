"""One named session of a daemon that several tests share, and its agent's own log."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.peers.agent import AgentLog, scripted
from tests.peers.host import PATIENCE, Frame, Host

_names = itertools.count(1)
SOON = 10.0
FOUR = {"reply", "stop_reason", "response_metadata", "update_metadata"}
"""The keys of a prompt's result, neither more nor less."""


class Room:
    """A session with a name of its own; its agent is the scripted one, with `options`."""

    def __init__(self, host: Host, directory: Path) -> None:
        self.host = host
        self.name = f"room-{next(_names)}"
        self.directory = directory
        self.log = AgentLog(directory / f"{self.name}.ndjson")
        self._begin = len(host.frames)

    def config(self, *options: str, **more: Any) -> Frame:
        env = {"SCRIPTED_LOG": str(self.log.path), **more.pop("env", {})}
        return {"command": scripted(*options), "env": env, **more}

    def send(self, operation: str, **fields: Any) -> int | None:
        return self.host.send(operation, session=self.name, **fields)

    def call(self, operation: str, seconds: float = PATIENCE, **fields: Any) -> Frame:
        return self.host.answer(self.send(operation, **fields), seconds)

    def ok(self, operation: str, **fields: Any) -> Any:
        """The result of an operation that must succeed."""
        response = self.call(operation, **fields)
        assert response["ok"] is True, response
        return response["result"]

    def refused(self, operation: str, code: str, **fields: Any) -> str:
        """The words of an operation that must be refused with that code."""
        response = self.call(operation, **fields)
        assert (response["ok"], response.get("code")) == (False, code), response
        return response["error"]

    def open(self, *options: str, **more: Any) -> Any:
        return self.ok("open", config=self.config(*options, **more))

    def start(self, *contents: Any, **config: Any) -> int | None:
        """A prompt on its way; its id."""
        return self.send("prompt", config={"user_contents": list(contents), **config})

    def prompt(self, *contents: Any, seconds: float = PATIENCE, **config: Any) -> Frame:
        return self.host.answer(self.start(*contents, **config), seconds)

    def reply(self, *contents: Any, **config: Any) -> str:
        """The text of a turn that must succeed."""
        response = self.prompt(*contents, **config)
        assert response["ok"] is True, response
        return response["result"]["reply"]

    def answer(self, request_id: int | None, seconds: float = PATIENCE) -> Frame:
        return self.host.answer(request_id, seconds)

    def events(self, name: str | None = None, **fields: Any) -> list[Frame]:
        return self.host.events(name, session=self.name, **fields)

    def event(self, name: str, seconds: float = PATIENCE, **fields: Any) -> Frame:
        return self.host.event(name, seconds, session=self.name, **fields)

    def wait(self, condition: Callable[[], Any], what: str = "") -> Any:
        return self.host.wait(condition, what=what)

    def texts(self, **fields: Any) -> list[str]:
        """The text of each update so far."""
        updates = [event["update"] for event in self.events("update", **fields)]
        contents = [u.get("content") for u in updates]
        return [c["text"] for c in contents if isinstance(c, dict) and "text" in c]

    def said(self, text: str) -> None:
        """Waits for an update with that text."""
        self.wait(lambda: text in self.texts(), f"an update with {text!r}")

    def frames(self) -> list[Frame]:
        """The frames since this room was made, in order."""
        return self.host.frames[self._begin :]

    def go(self, name: str) -> None:
        """Lets a `wait` of that name (in `directory`) pass."""
        (self.directory / name).touch()

    def gate(self, name: str) -> str:
        """The directive that waits for `go(name)`."""
        return f"wait {self.directory / name}"
