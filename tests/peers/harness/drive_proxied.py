"""Runs verifiers 0.4's own harnesses behind the bridge's model proxy; in 0.4's venv.

python drive_proxied.py MODEL_URL PROMPT...   prints one JSON object: each prompt's rollout
"""

import asyncio
import json
import sys
import traceback
from typing import Any

import verifiers.v1 as vf


async def rollout(url: str, prompt: str) -> dict[str, Any]:
    agent = vf.Agent(
        vf.AgentConfig(
            harness={"id": "proxied_harness"},
            runtime=vf.SubprocessConfig(),
            model="scripted",
            client=vf.EvalClientConfig(base_url=f"{url}/v1", api_key_var="DUMMY_KEY"),
        )
    )
    trace = await agent.run(vf.Task(vf.TaskData(prompt=prompt)))
    messages = [m.model_dump(mode="json") for b in trace.branches[-1:] for m in b.messages]
    errors = [f"{error.type}: {error.message}" for error in trace.errors]
    return {"ok": trace.ok, "turns": trace.num_turns, "errors": errors, "messages": messages}


async def main() -> None:
    url, *prompts = sys.argv[1:]
    results: dict[str, Any] = {}
    for prompt in prompts:
        try:
            results[prompt] = await asyncio.wait_for(rollout(url, prompt), 60)
        except Exception:  # noqa: BLE001 (the test shows it)
            results[prompt] = {"raised": traceback.format_exc()}
    print(json.dumps(results))


asyncio.run(main())
