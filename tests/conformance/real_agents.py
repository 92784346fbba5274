"""Runs the agent suite on the installed node agents, each with a scripted model on loopback.

    python -m tests.conformance.real_agents DIRECTORY [NAME...]

Writes DIRECTORY/NAME-VERSION.json for each; of these `python -m conformance table` makes the table
of docs/conformance.md. ONLY="PATTERN..." in the environment chooses checks.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import anyio

from bridge.scripted.model import scripted_model
from tests.peers.node_agents import RECIPES

MAKE = "echo conformance > made.txt"
TOOLS = {
    "claude": f'USE_TOOL bash {{"command":"{MAKE}","description":"x"}}',
    "pi": f'USE_TOOL bash {{"command":"{MAKE}"}}',
    "codex": f'USE_TOOL exec_command {{"cmd":"{MAKE}"}}',
    "copilot": f'USE_TOOL bash {{"command":"{MAKE}","description":"x"}}',
}
"""What makes each call a tool that it asks permission for, where it does."""


async def run(name: str, directory: Path) -> None:
    async with scripted_model() as model:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            recipe = RECIPES[name](Path(home), model.url, "http://127.0.0.1:9/mcp")
            meta = ["--session-meta", json.dumps(recipe.config.get("session_meta", {}))]
            prompts = [
                "--prompt",
                "PLAIN",
                "--slow-prompt",
                "SLOW 10",
                "--tool-prompt",
                TOOLS[name],
            ]
            only = os.environ.get("ONLY", "").split()
            some = [word for pattern in only for word in ("--only", pattern)]
            command = [sys.executable, "-m", "conformance", "agent", "--json", *prompts, *meta]
            command += some
            found = await anyio.run_process(
                [*command, "--", *recipe.command],
                env={**os.environ, **recipe.environment},
                check=False,
                stderr=sys.stderr,
            )
    if found.returncode not in (0, 3):
        raise SystemExit(f"{name}: exit code {found.returncode}")
    document = json.loads(found.stdout)
    version = (document["agent"] or {}).get("version", "unknown")
    (directory / f"{name}-{version}.json").write_bytes(found.stdout)


def main() -> None:
    directory, *names = sys.argv[1:]
    Path(directory).mkdir(parents=True, exist_ok=True)
    for name in names or RECIPES:
        anyio.run(run, name, Path(directory))


if __name__ == "__main__":
    main()
