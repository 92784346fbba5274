"""The scripted agent's command line, and what it wrote down about itself."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.peers.processes import wait_until

PROGRAM = Path(__file__).with_name("scripted_agent.py")
PROGRAM_V2 = Path(__file__).with_name("scripted_v2_agent.py")


def scripted(*options: str) -> list[str]:
    """The command that starts the scripted agent; options as in its docstring."""
    return [sys.executable, "-I", "-S", str(PROGRAM), *options]


def scripted_v2(*options: str) -> list[str]:
    """The command that starts the one that speaks ACP version 2."""
    return [sys.executable, "-I", "-S", str(PROGRAM_V2), *options]


@dataclass(frozen=True)
class AgentLog:
    """What scripted agents with this log read and what befell them, in order."""

    path: Path

    def records(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        # The last line may be half written while the agent lives.
        lines = self.path.read_text().split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def messages(self, method: str | None = None) -> list[dict[str, Any]]:
        """Every message the agent got; with `method`, those requests and notifications."""
        found = [record["in"] for record in self.records() if "in" in record]
        return found if method is None else [m for m in found if m.get("method") == method]

    def methods(self) -> list[str]:
        return [message["method"] for message in self.messages() if "method" in message]

    def answer(self, request_id: str) -> dict[str, Any]:
        """The client's response to the agent's own request, once the agent has read it."""

        def found() -> list[dict[str, Any]]:
            return [m for m in self.messages() if "method" not in m and m.get("id") == request_id]

        wait_until(found, 5)
        assert len(found()) == 1, f"{len(found())} answers to {request_id}: {found()}"
        return found()[0]

    def prompts(self) -> list[list[dict[str, Any]]]:
        return [message["params"]["prompt"] for message in self.messages("session/prompt")]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [record for record in self.records() if record.get("event") == name]
