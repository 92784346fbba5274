"""verifiers 0.4's own null and bash harnesses, with the bridge's model proxy between their program
and the interception server. Runs in 0.4's venv.

PROXIED names the harness, BRIDGE the command; the proxy's events are appended to the file EVENTS.
The program runs in this environment, which has what its header asks for.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from verifiers.v1.harnesses.bash.harness import BashHarness
from verifiers.v1.harnesses.null.harness import NullHarness
from verifiers.v1.runtimes import Runtime

__all__ = ["ProxiedHarness"]
BASE: Any = {"null": NullHarness, "bash": BashHarness}[os.environ["PROXIED"]]


async def here(script: str, env: Any = None, *, activate: bool = True) -> list[str]:
    """In place of a runtime's `prepare_uv_script`."""
    return [sys.executable, written(script)]


def written(script: str) -> str:
    path = Path("chat_program.py").absolute()
    path.write_text(script)
    return str(path)


def note(said: bytes) -> None:
    with open(os.environ["EVENTS"], "ab") as file:
        file.write(said)


class ProxiedHarness(BASE):
    async def setup(self, runtime: Runtime) -> None:
        runtime.prepare_uv_script = here

    async def launch(
        self, ctx: Any, trace: Any, runtime: Runtime, endpoint: str, *rest: Any, **more: Any
    ) -> Any:
        runtime.prepare_uv_script = here
        command = [os.environ["BRIDGE"], "model", "--upstream", endpoint, "--events"]
        proxy = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        try:
            url = json.loads(await proxy.stdout.readline())["url"]
            return await super().launch(ctx, trace, runtime, url, *rest, **more)
        finally:
            proxy.terminate()
            said, _ = await proxy.communicate()
            note(said)
