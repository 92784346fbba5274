"""An agent that nobody has a profile for is driven by its command alone."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.matrix.agents import Agent
from tests.e2e.matrix.desk import Room
from tests.e2e.matrix.runner import SCENARIOS, play
from tests.peers.node_agents import REST

pytestmark = [pytest.mark.e2e, pytest.mark.heavy]
ROWS = ["turns", "shell", "cancel_stream", "close", "side"]


class Qwen(Agent):
    """Qwen Code, told of its model as its own documentation has it. It gives MCP servers so little
    time that on a busy machine it goes on without them, also where no proxy stands between."""

    wire = "chat"

    def config(self, model_url: str) -> dict[str, Any]:
        return {
            "command": [str(self.modules / ".bin/qwen"), "--acp", "--auth-type", "openai"],
            "env": {
                "OPENAI_BASE_URL": f"{model_url}/v1",
                "OPENAI_API_KEY": "dummy",
                "OPENAI_MODEL": "scripted",
            },
        }


@pytest.fixture(scope="module")
def room() -> Iterator[Room]:
    with tempfile.TemporaryDirectory(prefix="matrix-") as place, Room(Path(place)) as room:
        yield room


@pytest.mark.parametrize("row", ROWS)
def test_a_command_is_enough(room: Room, row: str) -> None:
    agent = Qwen("qwen", REST, ("run_shell_command", "command"), side="memory")
    cell = play(room, agent, SCENARIOS[row])
    assert cell.verdict == "works", cell.story or cell.note
