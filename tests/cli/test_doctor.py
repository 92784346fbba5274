"""`doctor` on the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [BRIDGE, "doctor", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | environment,
    )


def test_each_check_has_a_line_and_each_lack_its_remedy(tmp_path: Path) -> None:
    ended = run(PATH=str(tmp_path))
    assert ended.returncode == 0
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("ok       python")
    warnings = [index for index, line in enumerate(lines) if line.startswith("warning")]
    assert len(warnings) == 3
    assert all(lines[index + 1].strip().startswith("->") for index in warnings)


def test_a_misspelt_variable_is_told() -> None:
    ended = run(BRIDGE_RECRD="run.trace", BRIDGE_OF_SOMEBODY_ELSE="x", BRIDGE_SECRETS="A")
    assert "BRIDGE_RECRD is no setting; did you mean 'BRIDGE_RECORD'?" in ended.stdout
    assert ended.stdout.count("environment") == 1


def test_as_json() -> None:
    found = json.loads(run("--json").stdout)
    assert {"name", "state", "words", "mend"} == set(found[0])
    assert found[0]["name"] == "python"
