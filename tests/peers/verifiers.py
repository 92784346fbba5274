"""Runs a driver in a verifiers environment, switched to the bridge as docs/verifiers.md says.

The page's first Python block is the script that takes the runner's place, its second the switch,
its third an interception server behind the model proxy.
The wheel that the script's header asks for is built from this checkout; the only package index
that uv and pip know is a directory with that wheel and those of .peers/wheelhouse.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.peers.processes import MARKER, survivors

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".peers"
PAGE = ROOT / "docs/verifiers.md"
HARNESS = Path(__file__).with_name("harness")
BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))


def page_blocks() -> tuple[str, str, str]:
    """The script, the switch and the interception server of docs/verifiers.md."""
    script, switch, server = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert script.startswith("# /// script\n")
    assert "ACP_SOURCE" in switch
    assert "class ProxiedInterception" in server
    return script, switch, server


def build_wheel(directory: Path) -> None:
    """This checkout as a wheel."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


def build_index(directory: Path, wheels: list[Path]) -> None:
    """A package index of files: a page of links for each project."""
    for wheel in wheels:
        project = directory / wheel.name.partition("-")[0].lower().replace("_", "-")
        project.mkdir(parents=True, exist_ok=True)
        with (project / "index.html").open("a") as page:
            page.write(f'<a href="{wheel.as_uri()}">{wheel.name}</a>\n')


@dataclass
class Bench:
    """A place to run drivers of one verifiers generation in."""

    version: str
    directory: Path

    def __post_init__(self) -> None:
        self.script, switch, server = page_blocks()
        self.modules = self.directory / "modules"
        shutil.copytree(HARNESS, self.modules)
        (self.modules / "bridge_runner.py").write_text(self.script)
        (self.modules / "bridge_switch.py").write_text(switch)
        (self.modules / "proxied_interception.py").write_text(server)
        (self.directory / "bin").mkdir()
        (self.directory / "bin/uv").symlink_to(PEERS / "uv/bin/uv")
        build_wheel(self.directory / "wheels")
        wheels = [*(PEERS / "wheelhouse").glob("*.whl"), *self.directory.glob("wheels/*.whl")]
        build_index(self.directory / "index", wheels)

    def environment(self, marker: str) -> dict[str, str]:
        home = self.directory / "home"
        home.mkdir(exist_ok=True)
        index = (self.directory / "index").as_uri()
        return {
            "PATH": f"{self.directory / 'bin'}:{os.environ['PATH']}",
            "HOME": str(home),
            "UV_DEFAULT_INDEX": index,
            "UV_PYTHON": sys.executable,
            "UV_PYTHON_DOWNLOADS": "never",
            "PIP_INDEX_URL": index,
            "PYTHONDONTWRITEBYTECODE": "1",
            MARKER: marker,
        }

    def scripts(self) -> list[str]:
        """What verifiers handed to its runtimes to be started."""
        places = ("home/.cache/verifiers/runtimes/scripts", "private/tmp/vf-scripts")
        files = [file for place in places for file in (self.directory / place).glob("*.py")]
        return [file.read_text() for file in files]

    def run(
        self, driver: str, *arguments: str, before: Sequence[str] = (), **environment: str
    ) -> dict[str, Any]:
        """What the driver printed; nothing that it started may be left.

        `before`: a command that runs the driver's.
        """
        python = PEERS / f"verifiers-{self.version}" / "bin/python"
        assert python.exists(), f"{python} is missing: run `make peers`"
        marker = uuid.uuid4().hex
        done = subprocess.run(
            [*before, str(python), str(self.modules / driver), *arguments],
            cwd=self.directory,
            env=self.environment(marker) | environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        assert survivors(marker, 5) == []
        results = json.loads(done.stdout.splitlines()[-1])
        for name, result in results.items():
            assert "raised" not in result, f"{name}: {result['raised']}\n{done.stderr[-3000:]}"
        return results
