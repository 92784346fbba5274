"""verifiers 0.4's interception server behind the model proxy: whole rollouts of its own harnesses.

Node agents get to it through the daemon: test_verifiers_04.py.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.peers.servers import Server
from tests.peers.verifiers import BRIDGE, Bench

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench("0.4", tmp_path_factory.mktemp("interception"))


def events(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def run(bench: Bench, model: Server, harness: str, file: Path, *prompts: str) -> dict[str, Any]:
    environment = {"PROXIED": harness, "BRIDGE": BRIDGE, "EVENTS": str(file)}
    return bench.run("drive_proxied.py", model.url, *prompts, **environment)


def test_the_null_harness_has_its_rollout(bench: Bench, model: Server, tmp_path: Path) -> None:
    file = tmp_path / "events"
    found = run(bench, model, "null", file, "SAY from the model", "SLOW 1")
    for prompt, reply in (("SAY from the model", "from the model"), ("SLOW 1", "pong")):
        result = found[prompt]
        assert result["ok"], result["errors"]
        assert result["turns"] == 1
        assert result["messages"][-1]["content"].endswith(reply)
    told = events(file)
    turns = [event for event in told if event["dialect"] == "chat"]
    assert len(turns) == 2
    assert all(event["outcome"] == "complete" and event["status"] == 200 for event in turns)
    assert all(event["finish_reason"] == "stop" and event["usage"] for event in turns)


def test_the_bash_harness_has_its_rollout(bench: Bench, model: Server, tmp_path: Path) -> None:
    file = tmp_path / "events"
    prompt = 'USE_TOOL bash {"command": "echo through the proxy"}'
    result = run(bench, model, "bash", file, prompt)[prompt]
    assert result["ok"], result["errors"]
    assert result["turns"] == 2
    assert "through the proxy" in str(result["messages"][-1]["content"])
    turns = [event for event in events(file) if event["dialect"] == "chat"]
    assert [event["finish_reason"] for event in turns] == ["tool_calls", "stop"]
    assert {event["outcome"] for event in turns} == {"complete"}
