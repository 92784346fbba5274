"""Runs rollouts of one of verifiers' own agent harnesses; in 0.4's venv, or in 0.2's.

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
from outcomes import outcome
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


def task_class(policed: bool) -> type[vf.Task]:
    """The task, with a tool gate if it is policed; only 0.4 has one."""
    if not policed:
        return ToolTask
    from drive_04 import PolicedTask

    return type("PolicedToolTask", (PolicedTask, ToolTask), {})


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
    data = vf.TaskData(idx=0, prompt=None, system_prompt="Be brief.")
    task = task_class(policed)(data)
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
    messages = [m.model_dump(mode="json") for m in conversation(trace, replies[-1])]
    return outcome(trace) | {"replies": replies, "messages": messages}


async def main() -> None:
    results: dict[str, Any] = {}
    for name, scenario in SPEC["scenarios"].items():
        try:
            results[name] = await asyncio.wait_for(rollout(**scenario), 240)
        except Exception:  # noqa: BLE001 (the test shows it)
            results[name] = {"raised": traceback.format_exc()}
    print(json.dumps(results))


asyncio.run(main())
