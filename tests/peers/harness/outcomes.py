"""What a driver tells of a rollout; in 0.4's venv, or in 0.2's."""

from typing import Any

import verifiers.v1 as vf


def outcome(trace: vf.Trace) -> dict[str, Any]:
    return {
        "ok": trace.ok,
        "turns": trace.num_turns,
        "stop": trace.stop_condition,
        "errors": [f"{error.type}: {error.message}" for error in trace.errors],
        "messages": [
            message.model_dump(mode="json")
            for branch in trace.branches[-1:]
            for message in branch.messages
        ],
    }
