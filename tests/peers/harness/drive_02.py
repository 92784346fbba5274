"""Runs segments and sessions on verifiers 0.2, by its own ACP class; in 0.2's venv.

    python drive_02.py SPEC.json SCENARIO...      prints one JSON object: what each scenario saw

SPEC has `command`, `env` and `mcp_urls`, as ACP.run takes them.
"""

import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import bridge_switch  # noqa: F401 (the two lines of docs/verifiers.md)
import verifiers.v1 as vf
from verifiers.v1.acp import ACP
from verifiers.v1.runtimes import Runtime, SubprocessConfig, make_runtime

SPEC = json.loads(Path(sys.argv[1]).read_text())


class PlainHarness(vf.Harness[vf.HarnessConfig]):
    """What a session needs of a harness: its configuration."""

    async def launch(self, *arguments: Any, **named: Any) -> Any:
        raise NotImplementedError


async def run_once(runtime: Runtime, prompt: Any, **more: Any) -> dict[str, Any]:
    result = await ACP().run(
        runtime, SPEC["env"], SPEC["command"], prompt, mcp_urls=SPEC.get("mcp_urls"), **more
    )
    return {"code": result.exit_code, "stdout": result.stdout, "stderr": result.stderr[-2000:]}


async def once(runtime: Runtime) -> dict[str, Any]:
    return await run_once(runtime, "SAY hello", system_prompt="Be brief.")


async def transcript(runtime: Runtime) -> dict[str, Any]:
    messages = [
        vf.UserMessage(content="first"),
        vf.AssistantMessage(content="pong"),
        vf.UserMessage(content="SAY second"),
    ]
    return await run_once(runtime, messages)


async def once_with_tool(runtime: Runtime) -> dict[str, Any]:
    return await run_once(runtime, 'USE_TOOL echo {"message": "over MCP"}')


async def once_fails(runtime: Runtime) -> dict[str, Any]:
    return await run_once(runtime, "FAIL 400")


async def resumed(runtime: Runtime) -> dict[str, Any]:
    """Two segments of one session, each in a process of its own."""
    first = await run_once(runtime, "SAY eins", session_path="kept/session")
    session = (await runtime.read("kept/session")).decode()
    second = await run_once(runtime, "SAY zwei", session_path="kept/session")
    return {"first": first, "second": second, "session": session}


def session(runtime: Runtime, prompt: str | None = None) -> Any:
    harness = PlainHarness(vf.HarnessConfig(id="plain"))
    data = vf.TaskData(idx=0, prompt=prompt)
    urls = SPEC.get("mcp_urls") or {}
    return ACP().session(
        harness,
        None,  # no model context and no trace: the model is asked directly
        None,
        runtime,
        "",
        "",
        urls,
        data,
        env=SPEC["env"],
        command=SPEC["command"],
        prompt=prompt,
        system_prompt="Be brief.",
    )


async def session_turns(runtime: Runtime) -> dict[str, Any]:
    handle = session(runtime, "SAY opening")
    replies = [(await handle._run(None)).stdout]
    for text in ("SAY one", "SAY two"):
        replies.append((await handle._run([vf.UserMessage(content=text)])).stdout)
    await handle.close()
    return {"replies": replies}


async def session_survives_a_failed_turn(runtime: Runtime) -> dict[str, Any]:
    handle = session(runtime)
    try:
        await handle._run([vf.UserMessage(content="FAIL 400")])
        error = None
    except RuntimeError as failure:
        error = str(failure)
    reply = (await handle._run([vf.UserMessage(content="SAY fine")])).stdout
    await handle.close()
    return {"error": error, "reply": reply}


SCENARIOS: dict[str, Callable[[Runtime], Awaitable[dict[str, Any]]]] = {
    scenario.__name__: scenario
    for scenario in (
        once,
        transcript,
        once_with_tool,
        once_fails,
        resumed,
        session_turns,
        session_survives_a_failed_turn,
    )
}


async def main() -> None:
    results: dict[str, Any] = {}
    for name in sys.argv[2:]:
        runtime = make_runtime(SubprocessConfig())
        await runtime.start()
        try:
            results[name] = await asyncio.wait_for(SCENARIOS[name](runtime), 60)
        except Exception:  # noqa: BLE001 (the test shows it)
            results[name] = {"raised": traceback.format_exc()}
        finally:
            await runtime.stop()
    print(json.dumps(results))


asyncio.run(main())
