"""Runs rollouts on verifiers 0.4, by its own Agent and interactions; in 0.4's venv.

python drive_04.py MODEL_URL SCENARIO...      prints one JSON object: what each scenario saw
"""

import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import verifiers.v1 as vf
from outcomes import outcome
from verifiers.v1.types import AssistantMessage, Request, ToolMessage


class PolicedTask(vf.Task):
    """Blocks calls whose arguments say `forbidden`; ends the rollout at one that says `halt`."""

    @vf.intercept
    def police(self, request: Request, trace: vf.Trace) -> Request | None:
        probe = request.messages[-1]
        if not isinstance(probe, ToolMessage) or probe.content:
            return None
        calls = [
            call
            for message in request.messages
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls or []
            if call.id == probe.tool_call_id
        ]
        if any("halt" in call.arguments for call in calls):
            trace.stop("halted")
        if any("forbidden" in call.arguments for call in calls):
            blocked = probe.model_copy(update={"content": "blocked by policy"})
            return request.model_copy(update={"messages": [*request.messages[:-1], blocked]})
        return None


def agent(model_url: str) -> vf.Agent:
    client = vf.EvalClientConfig(base_url=f"{model_url}/v1", api_key_var="DUMMY_KEY")
    return vf.Agent(
        vf.AgentConfig(
            harness={"id": "bridge_harness"},
            runtime=vf.SubprocessConfig(),
            model="scripted",
            client=client,
        )
    )


async def exchange(
    url: str, turns: list[str], task: type[vf.Task] = vf.Task, **data: Any
) -> dict[str, Any]:
    """An interaction of several turns; each turn's reply, then how the rollout ended."""
    replies: list[str | None] = []
    async with agent(url).interaction(task(vf.TaskData(**data))) as interaction:
        for text in turns:
            segment = await interaction.turn(text)
            replies.append(None if segment.terminated else segment.last_reply)
            if segment.terminated:
                break
    return {"replies": replies, **outcome(interaction.trace)}


async def several_turns(url: str) -> dict[str, Any]:
    return await exchange(url, ["SAY one", "SAY two", "hello"], system_prompt="Be brief.")


async def prompted(url: str) -> dict[str, Any]:
    trace = await agent(url).run(vf.Task(vf.TaskData(prompt="SAY from the task")))
    return outcome(trace)


async def mcp_call(url: str) -> dict[str, Any]:
    return await exchange(url, ['USE_TOOL echo {"message": "over MCP"}'])


async def gate_allows(url: str) -> dict[str, Any]:
    return await exchange(url, ['USE_TOOL bash {"command": "echo allowed"}'], PolicedTask)


async def gate_denies(url: str) -> dict[str, Any]:
    prompts = ['USE_TOOL bash {"command": "touch forbidden"}', "SAY still here"]
    return await exchange(url, prompts, PolicedTask)


async def gate_stops(url: str) -> dict[str, Any]:
    return await exchange(url, ['USE_TOOL bash {"command": "touch halt"}'], PolicedTask)


async def steered(url: str) -> dict[str, Any]:
    """A message that overtakes a running turn, once the model has begun to speak."""
    async with agent(url).interaction(vf.Task(vf.TaskData())) as interaction:
        early = await interaction.steer("SAY too early")
        turn = asyncio.create_task(interaction.turn("SLOW 3"))
        receipt = early
        while receipt["outcome"] != "injected":
            await asyncio.sleep(0.05)
            receipt = await interaction.steer("SAY steered", message_id="m1")
        segment = await turn
    return {"early": early, "receipt": receipt, "reply": segment.last_reply} | outcome(
        interaction.trace
    )


async def failing(url: str) -> dict[str, Any]:
    return await exchange(url, ["FAIL 400"])


async def dying(url: str) -> dict[str, Any]:
    return await exchange(url, ["say part\nexit 3"])


SCENARIOS: dict[str, Callable[[str], Awaitable[dict[str, Any]]]] = {
    scenario.__name__: scenario
    for scenario in (
        several_turns,
        prompted,
        mcp_call,
        gate_allows,
        gate_denies,
        gate_stops,
        steered,
        failing,
        dying,
    )
}


async def main() -> None:
    url, *names = sys.argv[1:]
    results: dict[str, Any] = {}
    for name in names:
        try:
            results[name] = await asyncio.wait_for(SCENARIOS[name](url), 60)
        except Exception:  # noqa: BLE001 (the test shows it)
            results[name] = {"raised": traceback.format_exc()}
    print(json.dumps(results))


if __name__ == "__main__":
    asyncio.run(main())
