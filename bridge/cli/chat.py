"""`acp-mcp-bridge agents run`: a chat with an agent in the terminal, through a real daemon.

Rules: the daemon is the one harnesses use, spoken with by `bridge.client`. One prompt at a time;
the first Ctrl-C in a turn cancels it, any other ends the chat, in order. What stands where is
`bridge.cli.screen`'s.
"""

import argparse
import os
import signal
from collections import deque
from contextlib import suppress
from typing import Any

import anyio
from anyio.abc import TaskGroup

from bridge.cli.keyboard import Keyboard
from bridge.cli.screen import Screen
from bridge.client import Bridge, Event, Session, Turn
from bridge.errors import BridgeError, UsageError, first_of
from bridge.trace.summary import blocks

EVENTS = ("update", "permission")
_STDERR_KEPT = 20
_OPTIONS = {
    "config.model.base_url": "--model-url",
    "config.model.name": "--model",
    "config.model.wire": "--wire",
    ", or --intercept": "",
}
"""What the daemon calls by its own name has another one here, or none."""


def run(options: argparse.Namespace) -> int:
    """Exit code 1 if the last turn failed. Raises UsageError, BridgeError."""
    config, prompt = _asked(options)
    daemon = ["--record", options.record] if options.record else []
    try:
        return anyio.run(_chat, config, prompt, daemon, options.verbose)
    except BaseExceptionGroup as group:
        failure = first_of(group)
        if isinstance(failure, BridgeError):
            for name, option in _OPTIONS.items():
                failure.message = failure.message.replace(name, option)
            failure.args = (failure.message,)
        raise failure from None


def _asked(options: argparse.Namespace) -> tuple[dict[str, Any], str | None]:
    """The config of the session, and the only prompt if there is one; raises UsageError."""
    name: str | None = options.name
    after: list[str] = options.after
    if name is None and not after:
        raise UsageError("agents run: name an agent, or give a command: -- CMD...")
    config: dict[str, Any] = {"cwd": os.path.abspath(options.cwd or os.getcwd())}
    config["permission"] = options.permission
    if name is None:
        for flag in ("model_url", "model", "wire", "version", "adapter_version", "package"):
            if getattr(options, flag):
                raise UsageError(
                    f"--{flag.replace('_', '-')} is for an agent with a profile: a command of your "
                    "own is told of its model by the environment"
                )
        return config | {"command": after}, None
    config["command"] = list[str]()
    model = {"base_url": options.model_url, "name": options.model, "wire": options.wire}
    config["agent"] = name
    config["model"] = {key: value for key, value in model.items() if value is not None}
    if options.version or options.adapter_version or options.package:
        from bridge.cli.agents import chosen

        install = chosen(options, name).install
        config["agent_options"] = {"packages": install.packages if install is not None else {}}
    return config, " ".join(after) or None


async def _chat(config: dict[str, Any], prompt: str | None, daemon: list[str], loud: bool) -> int:
    log = deque[bytes](maxlen=_STDERR_KEPT)

    def on_stderr(data: bytes) -> None:
        log.append(data)
        if loud:
            os.write(2, data)

    keyboard, screen = Keyboard(), Screen()
    chat = Chat(keyboard, screen)
    code = 1
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(chat.watch, tasks)
            # A session of its own: the terminal's Ctrl-C is for us to act on.
            async with (
                Bridge.spawn(
                    options=daemon, events=EVENTS, on_stderr=on_stderr, new_session=True
                ) as bridge,
                bridge.session(**config) as session,
            ):
                code = await chat.talk(session, prompt)
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup:
        if not loud:
            screen.note(*b"".join(log).decode(errors="replace").splitlines()[-_STDERR_KEPT:])
        raise
    finally:
        screen.pause()
        keyboard.close()
    return 128 + chat.signal if chat.signal else code


class Chat:
    """The conversation. `signal`: the one that ended it, or 0."""

    def __init__(self, keyboard: Keyboard, screen: Screen) -> None:
        self.signal = 0
        self._keyboard = keyboard
        self._screen = screen
        self._session: Session | None = None
        self._cancelled = False
        self._question: anyio.CancelScope | None = None
        self._titles: dict[str, str] = {}
        self._message: Any = None

    async def watch(self, tasks: TaskGroup) -> None:
        """Acts on signals until the chat is over; it is the whole of `tasks` that they end."""
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for number in signals:
                if number == signal.SIGINT and self._session is not None and not self._cancelled:
                    self._cancelled = True
                    self._screen.note("cancels the turn; Ctrl-C again leaves")
                    tasks.start_soon(self._cancel, self._session)
                else:
                    self.signal = number
                    tasks.cancel_scope.cancel()

    async def _cancel(self, session: Session) -> None:
        self._drop_question()
        with suppress(BridgeError):
            await session.cancel()

    def _drop_question(self) -> None:
        if self._question is not None:
            self._question.cancel()

    async def talk(self, session: Session, prompt: str | None) -> int:
        """The turns: that of `prompt`, or one for each line until the input's end; exit code."""
        agent: dict[str, Any] = session.opened.get("agent") or {}
        named = " ".join(str(agent[key]) for key in ("name", "version") if agent.get(key))
        if prompt is not None:
            return 0 if await self._turn(session, prompt) else 1
        self._screen.note(f"{named or 'the agent'} is ready; Ctrl-C cancels a turn, Ctrl-D ends")
        done = True
        while True:
            line = await self._ask("> " if self._keyboard.terminal else "")
            if line is None:
                return 0 if done else 1
            if line.strip():
                done = await self._turn(session, line)

    async def _turn(self, session: Session, text: str) -> bool:
        """One turn, shown as it happens; whether it came to a good end. Raises BridgeError when the
        agent is gone."""
        events = session.events()
        turns: list[Turn] = []
        failures: list[BridgeError] = []

        async def prompt() -> None:
            try:
                turns.append(await session.prompt(text))
            except BridgeError as error:
                failures.append(error)
            finally:
                events.close()
                self._drop_question()

        self._session, self._cancelled = session, False
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(prompt)
                async for event in events:
                    if event["event"] == "permission":
                        await self._permission(session, event)
                    else:
                        self._update(event["update"])
        finally:
            self._session = None
        self._screen.pause()
        for failure in failures:
            if failure.code in ("agent_exited", "internal"):
                raise failure
            self._screen.note(f"failed: {failure.message}")
        return bool(turns) and self._ended(turns[0])

    def _ended(self, turn: Turn) -> bool:
        """Tells what was unusual about a turn's end."""
        errors: list[dict[str, Any]] = turn.response.get("model_errors") or []
        for error in errors:
            self._screen.note(f"model: {error.get('status') or ''} {error.get('error')}")
        if turn.stop_reason != "end_turn":
            self._screen.note(f"stopped: {turn.stop_reason}")
        elif not turn.reply:
            self._screen.note("the agent said nothing")
        return turn.stop_reason == "end_turn" and not (errors and not turn.reply)

    def _update(self, update: dict[str, Any]) -> None:
        match update.get("sessionUpdate"):
            case "agent_message_chunk" | "agent_thought_chunk" as kind:
                if update.get("messageId") != self._message:
                    self._message = update.get("messageId")
                    self._screen.pause()
                speak = self._screen.say if kind == "agent_message_chunk" else self._screen.think
                speak(blocks(update.get("content")))
            case "tool_call" | "tool_call_update":
                self._tool(update)
            case _:
                pass

    def _tool(self, update: dict[str, Any]) -> None:
        """A line when a call is first heard of, another if it fails."""
        ident = str(update.get("toolCallId"))
        if ident not in self._titles:
            self._titles[ident] = str(update.get("title") or update.get("kind") or ident)
            self._screen.note(f"* {self._titles[ident]}")
        if update.get("status") == "failed":
            self._screen.note(f"* {self._titles[ident]}: failed")

    async def _permission(self, session: Session, event: Event) -> None:
        """Puts a question to the user, unless the turn ends before the answer."""
        call = event["tool_call"]
        title = str(call.get("title") or call.get("kind") or call.get("toolCallId"))
        always = next(
            (item["optionId"] for item in event["options"] if item.get("kind") == "allow_always"),
            None,
        )
        if self._cancelled:
            return
        outcome: str | dict[str, Any] | None = None
        with anyio.CancelScope() as self._question:
            outcome = await self._answer(title, always)
        self._question = None
        if outcome is not None:
            try:
                await session.answer_permission(event, outcome)
            except BridgeError as error:
                self._screen.note(f"too late: {error.message}")

    async def _ask(self, question: str) -> str | None:
        """The next line, asked for where there is a question; None at the end of the input."""
        self._screen.ask(question)
        line = await self._keyboard.line()
        if self._keyboard.terminal and line is not None:
            self._screen.answered()
        return line

    async def _answer(self, title: str, always: Any) -> str | dict[str, Any]:
        choices = "yes, no" if always is None else "yes, no, always"
        self._keyboard.forget()
        while True:
            line = await self._ask(f"may it? {title} ({choices}): ")
            if line is None:
                self._screen.note("denied: nobody is there to say")
                return "deny"
            match line.strip().lower()[:1]:
                case "y":
                    return "allow"
                case "n":
                    return "deny"
                case "a" if always is not None:
                    return {"option_id": always}
                case _:
                    continue
