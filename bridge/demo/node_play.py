"""The demo with a node agent of one's own choice: what any agent can show, on the same loopback.

Owns: the steps and their checks. Rule: as in `bridge.demo.play`, nothing is shown that did not
happen; a node agent has its own words and tools, so the model is scripted by directives in the
prompt. Called by `bridge.cli.demo` for `--agent`.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from bridge.client import Bridge, Session
from bridge.demo.play import EVENTS, alive, cancelled, cast, mcp_server, retried
from bridge.demo.scene import Demo, Scene
from bridge.demo.screen import Screen
from bridge.scripted.model import ScriptedModel, scripted_model

_PLACED = "started as its profile says, its files and variables in a place of its own"
HELLO = "SAY A model made of a few lines of script. These words came through a bridge."
NOTE = 'USE_TOOL read_note {"name": "deep thought"}'
LONG = "SLOW 60"


async def play(screen: Screen, options: list[str], agent: str) -> int:
    """Runs the demo with the agent of that profile; gives how many checks held.

    Raises DemoFailed, BridgeError (perhaps in a group).
    """
    with tempfile.TemporaryDirectory(prefix="acp-mcp-bridge-demo-") as directory:
        async with scripted_model() as model, mcp_server() as server:
            demo = Demo(screen, model)
            screen.plain(cast(f"{agent}, {_PLACED}"))
            url = await server.url()
            async with Bridge.spawn(options=options, env=dict(os.environ), events=EVENTS) as bridge:
                pid = await _acts(demo, bridge, agent, Path(directory), url)
            demo.check(not alive(pid), f"the agent, process {pid}, still runs")
            screen.title("The end")
            screen.line("bridge", "has shut down: no agent, no tool, no session is left")
    return demo.checks


async def _acts(demo: Demo, bridge: Bridge, agent: str, directory: Path, url: str) -> int:
    """All steps; gives the agent's process id."""
    demo.screen.title("One daemon, one agent")
    config: dict[str, Any] = {
        "agent": agent,
        "cwd": str(directory),
        "model": {"base_url": demo.model.url, "name": "scripted", "api_key": "a-dummy"},
        "mcp_urls": {"notes": url},
        "mcp": {"notes": {"backoff": {"initial": 0.05}}},
        "permission": "ask",
    }
    async with bridge.session(**config) as session:
        info: dict[str, Any] = session.opened["agent"] or {}
        name = f"{info.get('name', agent)} {info.get('version', '')}".strip()
        version = session.opened["protocol_version"]
        demo.screen.line("agent", f"is ready: {name}, ACP version {version}")
        await _told(demo, session)
        scene = await retried(demo, Scene(demo, session, "allow"), NOTE)
        demo.check("answer is 42" in scene.turn.reply, f"the reply was {scene.turn.reply!r}")
        await cancelled(demo, Scene(demo, session, "allow"), LONG, after=3, gone=_hung_up)
        states = (await bridge.request("status"))["sessions"].values()
        [pid] = [state["agent_pid"] for state in states]
    return pid


async def _told(demo: Demo, session: Session) -> None:
    demo.screen.title("A reply")
    scene = await Scene(demo, session, "allow").prompt(HELLO)
    demo.check(scene.turn.stop_reason == "end_turn", f"it ended as {scene.turn.stop_reason}")
    demo.check("through a bridge" in scene.turn.reply, f"the reply was {scene.turn.reply!r}")


def _hung_up(model: ScriptedModel) -> bool:
    """Whether the long answer's client has gone; agents make calls of their own beside it."""
    return any(request.outcome == "left" for request in model.requests)
