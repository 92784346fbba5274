"""The demo's play: a host, a daemon, the embedded agent twice, a scripted model, an MCP server.

Owns: the steps and their checks. Rule: nothing is shown that did not happen: each step asserts
what it claims, and a step that fails ends the demo with exit code 1. Called by `bridge.cli.demo`.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio

from bridge.client import Bridge, Event, Session, Turn
from bridge.demo.screen import Screen
from bridge.scripted.model import scripted_model
from bridge.wire import codec

AGENT = [sys.executable, "-m", "bridge", "agent"]
EVENTS = ("update", "permission", "mcp", "model", "exit")


Meanwhile = Callable[[], Coroutine[Any, Any, None]]


class DemoFailed(Exception):
    """A step did not do what it shows; the text says which and how."""


def check(happened: object, what: str) -> None:
    """Raises DemoFailed unless it did happen."""
    if not happened:
        raise DemoFailed(what)


async def play(screen: Screen, options: list[str]) -> None:
    """Runs the demo; `options` are the daemon's. Raises DemoFailed, BridgeError."""
    with tempfile.TemporaryDirectory() as sessions:
        async with scripted_model() as model, mcp_server() as server:
            environment = {
                **os.environ,
                "OPENAI_BASE_URL": f"{model.url}/v1",
                "OPENAI_API_KEY": "a-dummy",
                "OPENAI_MODEL": "scripted",
            }
            async with Bridge.spawn(options=options, env=environment, events=EVENTS) as bridge:
                agent = [*AGENT, "--sessions", sessions]
                await _acts(screen, bridge, agent, server)
            screen.line("bridge", "shut down: agents, their tools and their servers' sessions gone")


async def _acts(screen: Screen, bridge: Bridge, agent: list[str], server: "McpServer") -> None:
    version = bridge.hello["daemon"]["version"]
    screen.title("One daemon, two agents")
    screen.line("bridge", f"ready: version {version}, host protocol {bridge.hello['protocol']}")
    async with bridge.session("plain", command=agent) as plain:
        info = plain.opened["agent"]
        screen.line("agent", f"{info['name']} {info['version']} is ready, session open")
        async with anyio.create_task_group() as tasks:
            # The second agent starts, and lists its server's tools, while the first one works.
            ready = anyio.Event()
            done = anyio.Event()
            tasks.start_soon(_with_tools, screen, bridge, agent, server, ready, done)
            await _streamed(screen, plain)
            await _steered(screen, plain)
            await _cancelled(screen, plain)
            ready.set()
            await done.wait()


async def _streamed(screen: Screen, session: Session) -> None:
    screen.title("A reply, streamed as the model says it")
    turn = await _turn(screen, session, "SLOW 0.5")
    check(
        turn.outcome == "completed" and turn.reply.endswith("pong"), f"the reply was {turn.reply!r}"
    )
    check(turn.usage, "the turn reports no usage")
    screen.line("host", f"turn {turn.number} ended: {turn.stop_reason}, usage {turn.usage}")


async def _steered(screen: Screen, session: Session) -> None:
    screen.title("Steering: a message into the running turn")
    receipts: list[dict[str, object]] = []

    async def steer() -> None:
        receipts.append(await session.steer("SAY of course, in French: bonjour"))
        screen.line("host", f"steers: 'in French, please' -> {receipts[0]['outcome']}")

    turn = await _turn(screen, session, "SLOW 0.25", meanwhile=steer)
    check(receipts[0].get("outcome") == "injected", f"the receipt was {receipts}")
    check(turn.reply.endswith("bonjour"), f"the reply was {turn.reply!r}")


async def _cancelled(screen: Screen, session: Session) -> None:
    screen.title("A cancel in mid-stream")

    async def cancel() -> None:
        screen.line("host", "cancels")
        await session.cancel()

    turn = await _turn(screen, session, "SLOW 30", meanwhile=cancel)
    check(turn.outcome == "cancelled", f"the outcome was {turn.outcome}")
    screen.line("host", f"turn {turn.number} ended: {turn.stop_reason}")


async def _with_tools(
    screen: Screen,
    bridge: Bridge,
    agent: list[str],
    server: "McpServer",
    ready: anyio.Event,
    done: anyio.Event,
) -> None:
    async with bridge.session(
        "tools",
        command=[*agent, "--tools", "bash"],
        mcp_urls={"notes": await server.url()},
        mcp={"notes": {"backoff": {"initial": 0.05}}},
        permission="ask",
    ) as session:
        await ready.wait()
        screen.title("A tool call whose server hiccups")
        turn = await _turn(screen, session, 'USE_TOOL read_note {"name": "deep thought"}')
        check("42" in turn.reply, f"the reply was {turn.reply!r}")
        screen.title("A local tool, with permission")
        turn = await _turn(screen, session, 'USE_TOOL bash {"command": "echo $((6 * 7))"}')
        check("42" in turn.reply, f"the reply was {turn.reply!r}")
    done.set()


async def _turn(
    screen: Screen, session: Session, text: str, *, meanwhile: Meanwhile | None = None
) -> Turn:
    """One prompt, with what happens meanwhile on the screen; `meanwhile` is called once, as soon
    as the agent has said something."""
    events = session.events()
    turns: list[Turn] = []
    screen.line("host", f"prompts {session.name}: {text}")

    async def prompt() -> None:
        turns.append(await session.prompt(text))
        events.close()

    attempts: list[Event] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(prompt)
        async for event in events:
            if event["event"] == "mcp":
                attempts.append(event)
            await _show(screen, session, event)
            if meanwhile is not None and _text(event):
                tasks.start_soon(meanwhile)
                meanwhile = None
    if "read_note" in text:
        check([item["outcome"] for item in attempts].count("answer") == 1, f"attempts: {attempts}")
        check(len(attempts) == 2, f"attempts: {attempts}")
    return turns[0]


async def _show(screen: Screen, session: Session, event: Event) -> None:
    if text := _text(event):
        screen.line("agent", text)
    elif event["event"] == "permission":
        screen.line("agent", f"may I run: {event['tool_call'].get('title')}?")
        await session.answer_permission(event, "allow")
        screen.line("host", "allowed, once")
    elif event["event"] == "mcp":
        result = event["cause"] or event["outcome"]
        screen.line(
            "mcp", f"{event['server']}.{event['tool']} attempt {event['attempt']}: {result}"
        )
    elif event["event"] == "model":
        spent = f"{(event.get('end') or 0) * 1e3:.0f} ms"
        screen.line("model", f"{event['path']} {event['status']} in {spent}, {event['outcome']}")
    elif event["event"] == "update" and event["update"]["sessionUpdate"] == "tool_call_update":
        update = event["update"]
        if update.get("status") in ("completed", "failed"):
            screen.line("agent", f"tool call {update['status']}")


def _text(event: Event) -> str:
    """The text of an agent message chunk."""
    if event["event"] != "update" or event["update"]["sessionUpdate"] != "agent_message_chunk":
        return ""
    return event["update"]["content"].get("text", "")


class McpServer:
    """The demo's MCP server, starting up."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self._process = process

    async def url(self) -> str:
        """Its address, once it listens."""
        assert self._process.stdout is not None
        data = b""
        while b"\n" not in data:
            data += await self._process.stdout.receive()
        return codec.decode(data)["url"]


@asynccontextmanager
async def mcp_server() -> AsyncGenerator[McpServer]:
    """Starts the server; leaving ends it."""
    process = await anyio.open_process(
        [sys.executable, "-m", "bridge.demo.mcp_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None,
    )
    try:
        yield McpServer(process)
    finally:
        with anyio.CancelScope(shield=True):
            assert process.stdin is not None
            await process.stdin.aclose()
            with anyio.move_on_after(2):
                await process.wait()
            if process.returncode is None:
                process.kill()
            await process.aclose()
