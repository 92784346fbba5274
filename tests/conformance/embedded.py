"""The agent suite on the embedded agent, with a scripted model on loopback.

python -m tests.conformance.embedded [OPTION...]     options as those of `conformance agent`
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
import anyio.to_thread

from bridge.scripted.model import scripted_model

BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
TEXTS = ["--prompt", "PLAIN", "--slow-prompt", "SLOW 20"]
TEXTS += ["--tool-prompt", 'USE_TOOL bash {"command":"echo conformance"}']


async def run(options: list[str]) -> int:
    """The suite's exit code; what it prints goes to stdout as it comes."""
    async with scripted_model() as model:
        with tempfile.TemporaryDirectory() as sessions:
            agent = [BRIDGE, "agent", "--tools", "bash", "--sessions", sessions]
            suite = [sys.executable, "-m", "conformance", "agent", *TEXTS, *options]
            settings = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_MODEL": "scripted"}

            def wait() -> int:
                environment = {**os.environ, **settings}
                return subprocess.run([*suite, "--", *agent], env=environment).returncode

            return await anyio.to_thread.run_sync(wait)


if __name__ == "__main__":
    sys.exit(anyio.run(run, sys.argv[1:]))
