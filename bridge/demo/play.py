"""The demo's play: a host, a daemon, the embedded agent twice, a scripted model, an MCP server.

Owns: the steps and their checks. Rule: nothing is shown that did not happen: each step asserts
what it claims, and a step that fails ends the demo with exit code 1. Called by `bridge.cli.demo`.
"""

import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from bridge.client import Bridge, Session
from bridge.demo import script
from bridge.demo.scene import Demo, DemoFailed, Scene
from bridge.demo.screen import Screen
from bridge.io.family import Family
from bridge.io.process import Process, spawn
from bridge.scripted.model import ScriptedModel, scripted_model
from bridge.wire import codec

AGENT = [sys.executable, "-m", "bridge", "agent"]
EVENTS = ("update", "permission", "mcp", "model", "exit")

_CAST = """\
     host  this program, using the Python API (bridge.client)
   bridge  the daemon: a process between the host and its agents, with a proxy for their
           model traffic and one for their MCP servers
    agent  {agent}
    model  a scripted model server on loopback
      mcp  a real MCP server on loopback, whose first tool call fails"""


def cast(agent: str) -> str:
    """Who plays; `agent` says what the agent is."""
    return _CAST.format(agent=agent)


async def play(screen: Screen, options: list[str]) -> int:
    """Runs the demo; `options` are the daemon's. Gives how many checks held.

    Raises DemoFailed, BridgeError (perhaps in a group).
    """
    with tempfile.TemporaryDirectory(prefix="acp-mcp-bridge-demo-") as directory:
        async with scripted_model(script=script.answer) as model, mcp_server() as server:
            demo = Demo(screen, model)
            environment = {
                **os.environ,
                "OPENAI_BASE_URL": f"{model.url}/v1",
                "OPENAI_API_KEY": "a-dummy",
                "OPENAI_MODEL": "scripted",
            }
            screen.plain(
                cast("acp-mcp-bridge agent, an ACP agent; two of them, each its own process")
            )
            async with Bridge.spawn(options=options, env=environment, events=EVENTS) as bridge:
                pids = await _acts(demo, bridge, Path(directory), server)
            demo.check(not any(alive(pid) for pid in pids), f"an agent of {pids} still runs")
            screen.title("The end")
            screen.line("bridge", "has shut down: no agent, no tool, no session is left")
    return demo.checks


async def _acts(demo: Demo, bridge: Bridge, directory: Path, server: "McpServer") -> list[int]:
    """All steps; gives the agents' process ids."""
    screen, daemon = demo.screen, bridge.hello["daemon"]
    sessions = ["--sessions", str(directory / "sessions")]
    screen.title("One daemon, two agents")
    screen.line("bridge", f"{daemon['name']} {daemon['version']} is ready")
    pids: list[int] = []
    async with anyio.create_task_group() as tasks:
        # The second agent starts, and lists its server's tools, while the first one works.
        handy = Handy(bridge, [*AGENT, *sessions, "--tools", "bash"], directory, server)
        tasks.start_soon(handy.run)
        async with bridge.session("plain", command=[*AGENT, *sessions]) as plain:
            name, version = plain.opened["agent"]["name"], plain.opened["protocol_version"]
            screen.line("agent", f"the first one is ready: {name}, ACP version {version}")
            await _streamed(demo, plain)
            await _steered(demo, plain)
            await cancelled(
                demo,
                Scene(demo, plain),
                script.MILLION,
                after=5,
                gone=lambda model: model.requests[-1].outcome == "left",
            )
            session = await handy.session()
            states = (await bridge.request("status"))["sessions"].values()
            pids += [state["agent_pid"] for state in states]
        scene = await retried(demo, Scene(demo, session), script.NOTE)
        demo.check(scene.turn.reply.endswith("42"), f"the reply was {scene.turn.reply!r}")
        await _permitted(demo, session)
        await _denied(demo, session, directory)
        handy.leave()
    demo.check(len(pids) == 2 and all(pids), f"the agents' processes were {pids}")
    return pids


async def _streamed(demo: Demo, session: Session) -> None:
    demo.screen.title("A reply, shown as the model says it")
    scene = await Scene(demo, session).prompt(script.HELLO)
    demo.check(scene.turn.stop_reason == "end_turn", f"it ended as {scene.turn.stop_reason}")
    demo.check(len(scene.pieces) > 5, f"it came in {len(scene.pieces)} pieces")
    demo.check("".join(scene.pieces) == scene.turn.reply, f"the reply was {scene.turn.reply!r}")
    usage = scene.turn.usage or {}
    demo.check(usage.get("totalTokens"), f"the turn reports usage {usage}")
    demo.screen.line("host", f"got the reply: {usage['totalTokens']} tokens, end_turn")


async def _steered(demo: Demo, session: Session) -> None:
    demo.screen.title("Steering: another message, into the running turn")

    async def steer() -> None:
        receipt = await session.steer(script.FRENCH)
        demo.screen.line("host", f"steers: {script.FRENCH} ({receipt['outcome']})")
        demo.check(receipt["outcome"] == "injected", f"the receipt was {receipt}")

    scene = await Scene(demo, session).prompt(script.COUNT, after=2, do=steer)
    said = "".join(scene.pieces)
    demo.check("five." in said, f"it did not finish counting: {said!r}")
    demo.check(scene.turn.reply.endswith("quatre, cinq."), f"the reply was {scene.turn.reply!r}")


async def cancelled(
    demo: Demo, scene: Scene, prompt: str, *, after: int, gone: Callable[[ScriptedModel], bool]
) -> None:
    """A turn that is cancelled after so many pieces; `gone`: its client has left the model."""
    demo.screen.title("A cancel in mid-sentence")

    async def cancel() -> None:
        demo.screen.line("host", "cancels")
        await scene.session.cancel()

    await scene.prompt(prompt, after=after, do=cancel)
    demo.check(scene.turn.stop_reason == "cancelled", f"it ended as {scene.turn.stop_reason}")
    with anyio.fail_after(5):
        await demo.model.until(gone)
    demo.screen.line("model", "its client has hung up: nothing more is generated")


async def retried(demo: Demo, scene: Scene, prompt: str) -> Scene:
    """A turn whose tool call fails once and is answered at the second attempt."""
    demo.screen.title("A tool call whose server has a hiccup")
    await scene.prompt(prompt)
    outcomes = [(event["cause"], event["outcome"]) for event in scene.attempts]
    demo.check(len(outcomes) == 2, f"the attempts were {outcomes}")
    demo.check("503" in str(outcomes[0][0]), f"the first attempt: {outcomes[0]}")
    demo.check(outcomes[1][1] == "answer", f"the second attempt: {outcomes[1]}")
    return scene


async def _permitted(demo: Demo, session: Session) -> None:
    demo.screen.title("A tool of the agent's own, with permission")
    scene = await Scene(demo, session, verdict="allow").prompt(script.SHELL)
    demo.check(len(scene.asked) == 1, f"{len(scene.asked)} permission requests")
    demo.check(scene.turn.reply.endswith("42"), f"the reply was {scene.turn.reply!r}")


async def _denied(demo: Demo, session: Session, directory: Path) -> None:
    demo.screen.title("And one without")
    precious = directory / "precious.txt"
    precious.touch()
    scene = await Scene(demo, session, verdict="deny").prompt(script.DELETE)
    demo.check(len(scene.asked) == 1, f"{len(scene.asked)} permission requests")
    demo.check(precious.exists(), "the file was deleted")
    demo.check("not allow" in scene.turn.reply, f"the reply was {scene.turn.reply!r}")


class Handy:
    """The session with tools, opened in a task of its own; `leave` closes it."""

    def __init__(
        self, bridge: Bridge, command: list[str], directory: Path, server: "McpServer"
    ) -> None:
        self._bridge = bridge
        self._command = command
        self._directory = directory
        self._server = server
        self._ready = anyio.Event()
        self._over = anyio.Event()
        self._session: Session | None = None

    async def run(self) -> None:
        url = await self._server.url()
        async with self._bridge.session(
            "handy",
            command=self._command,
            cwd=str(self._directory),
            mcp_urls={"notes": url},
            mcp={"notes": {"backoff": {"initial": 0.05}}},
            permission="ask",
        ) as self._session:
            self._ready.set()
            await self._over.wait()

    async def session(self) -> Session:
        await self._ready.wait()
        assert self._session is not None
        return self._session

    def leave(self) -> None:
        self._over.set()


class McpServer:
    """The demo's MCP server, starting up."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def url(self) -> str:
        """Its address, once it listens."""
        data = b""
        while b"\n" not in data:
            piece = await self._process.stdout.receive()
            if not piece:
                raise DemoFailed("the MCP server did not start; its stderr says why")
            data += piece
        return codec.decode(data)["url"]


@asynccontextmanager
async def mcp_server() -> AsyncGenerator[McpServer]:
    """Starts the server; leaving ends it."""
    command = [sys.executable, "-m", "bridge.demo.mcp_server"]
    async with spawn(command, env=dict(os.environ), family=Family()) as process:
        yield McpServer(process)


def alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
