"""A verifiers 0.4 harness for any ACP command, as a user would write one. Runs in 0.4's venv.

What it starts comes from BRIDGE_HARNESS, a JSON object `{"command", "env", "mcp_urls", "files"}`;
`{endpoint}`, `{base}`, `{secret}` and `{model}` in its strings are filled in for each rollout. The
switch to the bridge is docs/verifiers.md's own, in bridge_switch.py.
"""

import json
import os

import bridge_switch  # noqa: F401 (the two lines of docs/verifiers.md)
import verifiers.v1 as vf
from verifiers.v1.runtimes import Runtime

__all__ = ["BridgeHarness"]


class BridgeHarness(vf.ACPHarness[vf.HarnessConfig]):
    """Every tool call is gated, MCP servers are those of the environment."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_MCP = True
    SUPPORTS_TOOL_INTERCEPTION = True
    NEEDS_CONTAINER = False

    async def prepare_acp(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ACPConfig:
        words = {
            "{endpoint}": endpoint,
            "{base}": endpoint.removesuffix("/v1"),
            "{secret}": secret,
            "{model}": ctx.model,
        }
        text = os.environ["BRIDGE_HARNESS"]
        for word, value in words.items():
            text = text.replace(word, value)
        spec = json.loads(text)
        for name, content in spec.get("files", {}).items():
            await runtime.write(name, content.encode())
        system_prompt, prompt = self.resolve_prompt(data)
        return vf.ACPConfig(
            env=spec["env"],
            command=spec["command"],
            prompt=prompt,
            mcp_urls=mcp_urls | spec.get("mcp_urls", {}),
            system_prompt=system_prompt,
            session_meta=spec.get("session_meta"),
        )
