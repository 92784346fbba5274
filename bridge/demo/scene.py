"""One turn of the demo: prompted, watched event by event, shown, and kept to be checked.

Rule: what is printed is what an event said; nothing is printed from the script. Made by
`bridge.demo.play`.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Literal, Self

import anyio

from bridge.client import Event, Session, Turn
from bridge.demo.screen import Screen
from bridge.scripted.model import ScriptedModel

Act = Callable[[], Coroutine[Any, Any, None]]


class DemoFailed(Exception):
    """A step did not do what it shows; the text says which and how."""


class Demo:
    """What all scenes share. `checks`: how many have held."""

    def __init__(self, screen: Screen, model: ScriptedModel) -> None:
        self.screen = screen
        self.model = model
        self.checks = 0

    def check(self, happened: object, what: str) -> None:
        """Raises DemoFailed unless it did happen."""
        if not happened:
            raise DemoFailed(what)
        self.checks += 1


class Scene:
    """A turn of `session`. `verdict`: the host's answer to permission requests."""

    def __init__(
        self, demo: Demo, session: Session, verdict: Literal["allow", "deny"] = "deny"
    ) -> None:
        self._demo = demo
        self.session = session
        self._verdict = verdict
        self._turns: list[Turn] = []
        self._message: str | None = None
        self.pieces: list[str] = []
        self.attempts: list[Event] = []
        self.asked: list[Event] = []

    @property
    def turn(self) -> Turn:
        return self._turns[0]

    async def prompt(self, text: str, *, after: int = 0, do: Act | None = None) -> Self:
        """Runs the turn to its end; `do` is called once the agent has said `after` pieces."""
        events = self.session.events()
        self._demo.screen.line("host", f"asks: {text}")

        async def turn() -> None:
            self._turns.append(await self.session.prompt(text))
            events.close()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn)
            async for event in events:
                await self._show(event)
                if do is not None and len(self.pieces) == after:
                    tasks.start_soon(do)
                    do = None
        self._demo.check(do is None, f"the agent said {len(self.pieces)} pieces, not {after}")
        return self

    async def _show(self, event: Event) -> None:
        screen = self._demo.screen
        match event["event"]:
            case "update":
                self._update(event["update"])
            case "permission":
                self.asked.append(event)
                screen.line("agent", f"asks: may I run {event['tool_call'].get('title')!r}?")
                await self.session.answer_permission(event, self._verdict)
                screen.line("host", f"answers: {self._verdict}")
            case "mcp":
                self.attempts.append(event)
                result = event["cause"] or event["outcome"]
                place = f"{event['server']}.{event['tool']}"
                screen.line("mcp", f"{place}, attempt {event['attempt']}: {result}")
            case _:
                pass

    def _update(self, update: dict[str, Any]) -> None:
        screen = self._demo.screen
        match update["sessionUpdate"]:
            case "agent_message_chunk":
                self.pieces.append(update["content"]["text"])
                message = update.get("messageId")
                if message != self._message:
                    self._message = message
                    screen.pause()
                screen.stream("agent", self.pieces[-1])
            case "tool_call":
                name = update.get("name") or update.get("title")
                given = update.get("rawInput")
                screen.line("agent", f"wants to call {name}" + (f" with {given}" if given else ""))
            case "tool_call_update" if update.get("status") in ("completed", "failed"):
                screen.line("agent", f"the call has {update['status']}")
            case _:
                pass
