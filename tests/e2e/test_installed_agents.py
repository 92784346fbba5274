"""An agent from nothing: installed from the registry, then talked to, then there without one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers.processes import MARKER, survivors
from tests.peers.servers import Server

pytestmark = pytest.mark.e2e
BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
NOWHERE = "http://127.0.0.1:9"


def run(
    environment: dict[str, str], *arguments: str, text: str = ""
) -> "subprocess.CompletedProcess[str]":
    command = [BRIDGE, "agents", *arguments]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=300, env=environment
    )


def test_pi_is_installed_answers_and_needs_no_registry_any_more(
    tmp_path: Path, model: Server
) -> None:
    environment = os.environ | {
        "BRIDGE_AGENTS_DIR": str(tmp_path / "agents"),
        "HOME": str(tmp_path),
        MARKER: str(tmp_path),
    }
    asked = ["--model-url", f"{model.url}/v1", "--model", "scripted"]
    missing = run(environment, "run", "pi", *asked, "--", "SAY hello")
    assert missing.returncode == 1
    assert "run: acp-mcp-bridge agents install pi\n" in missing.stderr

    installed = run(environment, "install", "pi")
    assert installed.returncode == 0, installed.stderr
    assert (Path(installed.stdout.strip()) / "node_modules/.bin/pi-acp").exists()

    prompts = 'SAY good morning\nUSE_TOOL bash {"command": "echo from-the-shell"}\n'
    talked = run(environment, "run", "pi", *asked, text=prompts)
    assert talked.returncode == 0, talked.stderr
    assert talked.stdout.splitlines()[0] == "good morning"
    assert "from-the-shell" in talked.stdout
    assert any(line.startswith("* ") for line in talked.stderr.splitlines())

    again = run(environment | {"npm_config_registry": NOWHERE}, "install", "pi")
    assert (again.returncode, again.stdout) == (0, installed.stdout), again.stderr
    assert run(environment, "remove", "pi").stdout == installed.stdout
    assert survivors(str(tmp_path), 8) == []
