"""Runs a rollout of one of verifiers 0.4's own agent harnesses; in 0.4's venv.

    python drive_agents.py SPEC.json      prints one JSON object: what each scenario saw

SPEC has `config` (the harness's: `id`, `version`, `env`), `pins` (constants by module: the versions
that are installed), `model`, `model_url`, `tool_url`, and `scenarios` (each: `turns` of the user,
`policed`). With `proxy`, a command, that model proxy stands before the interception server.
"""

import asyncio
import importlib
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import bridge_switch  # noqa: F401 (the two lines of docs/verifiers.md)
import verifiers.v1 as vf
from drive_04 import PolicedTask, outcome
from proxied_interception import ProxiedInterception
from verifiers.v1.interception import InterceptionServer
from verifiers.v1.utils.loaders import harness_class

SPEC = json.loads(Path(sys.argv[1]).read_text())
for module, values in SPEC["pins"].items():
    for name, value in values.items():
        setattr(importlib.import_module(module), name, value)
# All that keeps these harnesses off the subprocess runtime.
harness_class(SPEC["config"]["id"]).NEEDS_CONTAINER = False


class Tiny(vf.Toolset[vf.ToolsetConfig]):
    """Tools of a server that runs already."""

    TOOL_PREFIX = "tiny"


class ToolTask(vf.Task):
    @classmethod
    def toolsets(cls, config: Any) -> list[vf.Toolset]:
        return [Tiny(vf.ToolsetConfig(url=SPEC["tool_url"]))]


class PolicedToolTask(PolicedTask, ToolTask):
    """The same with a tool gate."""


def conversation(trace: vf.Trace, reply: str | None) -> list[Any]:
    """The messages up to that reply; titles, suggestions and the like have other branches."""
    for branch in trace.branches:
        for place, message in enumerate(branch.messages):
            if message.role == "assistant" and (message.content or "").strip() == reply:
                return branch.messages[: place + 1]
    return []


async def rollout(turns: list[str], *, policed: bool) -> dict[str, Any]:
    client = vf.EvalClientConfig(base_url=f"{SPEC['model_url']}/v1", api_key_var="DUMMY_KEY")
    config = vf.AgentConfig(
        harness=SPEC["config"], runtime=vf.SubprocessConfig(), model=SPEC["model"], client=client
    )
    task = (PolicedToolTask if policed else ToolTask)(vf.TaskData(system_prompt="Be brief."))
    proxy = SPEC["proxy"]
    replies: list[str | None] = []
    async with ProxiedInterception(*proxy) if proxy else InterceptionServer() as interception:
        agent = vf.Agent(config, interception=interception)
        async with agent.interaction(task) as interaction:
            for text in turns:
                segment = await interaction.turn(text)
                replies.append(None if segment.terminated else segment.last_reply)
                if segment.terminated:
                    break
    trace = interaction.trace
    seconds = {"setup": trace.timing.setup.duration, "boot": trace.timing.boot.duration}
    messages = [m.model_dump(mode="json") for m in conversation(trace, replies[-1])]
    return outcome(trace) | {"replies": replies, "seconds": seconds, "messages": messages}


async def main() -> None:
    results: dict[str, Any] = {}
    for name, scenario in SPEC["scenarios"].items():
        try:
            results[name] = await asyncio.wait_for(rollout(**scenario), 240)
        except Exception:  # noqa: BLE001 (the test shows it)
            results[name] = {"raised": traceback.format_exc()}
    print(json.dumps(results))


asyncio.run(main())
