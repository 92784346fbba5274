"""verifiers 0.4.0, unchanged, with the bridge in place of its runner: rollouts on real agents."""

import json
from typing import Any

import pytest

from tests.peers.agent import scripted
from tests.peers.node_agents import claude
from tests.peers.servers import Server
from tests.peers.verifiers import BRIDGE, Bench

pytestmark = pytest.mark.peers
SCENARIOS = [
    "several_turns",
    "prompted",
    "mcp_call",
    "gate_allows",
    "gate_denies",
    "gate_stops",
    "steered",
    "failing",
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench("0.4", tmp_path_factory.mktemp("verifiers-0.4"))


@pytest.fixture(scope="module")
def seen(bench: Bench, model: Server, tools: Server) -> dict[str, Any]:
    """What every scenario saw on the embedded agent: one run, since verifiers loads in seconds."""
    spec = {
        "command": [BRIDGE, "agent", "--tools", "bash"],
        "env": {
            "OPENAI_BASE_URL": "{endpoint}",
            "OPENAI_API_KEY": "{secret}",
            "OPENAI_MODEL": "{model}",
        },
        "mcp_urls": {"tiny": tools.url},
    }
    return bench.run("drive_04.py", model.url, *SCENARIOS, BRIDGE_HARNESS=json.dumps(spec))


def tool_results(result: dict[str, Any]) -> list[str]:
    return [m["content"] for m in result["messages"] if m["role"] == "tool"]


def test_several_turns_of_one_session(seen: dict[str, Any]) -> None:
    result = seen["several_turns"]
    assert result["replies"] == ["one", "two", "pong"]
    assert (result["ok"], result["turns"], result["stop"]) == (True, 3, "user_closed")
    roles = [message["role"] for message in result["messages"]]
    assert roles.count("user") == roles.count("assistant") == 3


def test_a_task_with_a_prompt_runs_by_itself(seen: dict[str, Any]) -> None:
    result = seen["prompted"]
    assert (result["ok"], result["turns"], result["stop"]) == (True, 1, "agent_completed")
    assert result["messages"][-1]["content"] == "from the task"


def test_mcp_tools_are_called(seen: dict[str, Any], tools: Server) -> None:
    assert seen["mcp_call"]["replies"] == ["the tool said: echo: over MCP"]
    assert {"name": "echo", "arguments": {"message": "over MCP"}} in [
        {key: call[key] for key in ("name", "arguments")} for call in tools.calls()
    ]


def test_the_gate_lets_a_call_run(seen: dict[str, Any]) -> None:
    [said] = tool_results(seen["gate_allows"])
    assert "allowed" in said
    assert seen["gate_allows"]["ok"] is True


def test_the_gate_denies_one_call_and_the_rollout_goes_on(seen: dict[str, Any]) -> None:
    result = seen["gate_denies"]
    assert tool_results(result) == ["blocked by policy"]
    assert result["replies"][-1] == "still here"
    assert result["ok"] is True


def test_the_gate_stops_a_rollout(seen: dict[str, Any]) -> None:
    result = seen["gate_stops"]
    assert (result["ok"], result["stop"]) == (True, "halted")
    assert result["errors"] == []


def test_a_steer_reaches_the_running_turn(seen: dict[str, Any]) -> None:
    result = seen["steered"]
    assert result["early"]["outcome"] == "promptRequired"
    assert result["receipt"] == {"outcome": "injected"}
    assert result["reply"].endswith("steered")
    assert result["ok"] is True


def test_a_failing_model_fails_the_turn_in_words(seen: dict[str, Any]) -> None:
    result = seen["failing"]
    assert result["replies"] == [None]
    assert result["ok"] is False
    assert "400" in " ".join(result["errors"])


def test_an_agent_s_death_is_named(bench: Bench, model: Server) -> None:
    spec = {"command": scripted(), "env": {}}
    result = bench.run("drive_04.py", model.url, "dying", BRIDGE_HARNESS=json.dumps(spec))["dying"]
    assert result["ok"] is False
    assert "exit code 3" in " ".join(result["errors"])


@pytest.fixture(scope="module")
def on_claude(bench: Bench, model: Server, tools: Server) -> dict[str, Any]:
    """The same rollouts on Claude Code's adapter, which speaks Anthropic's wire."""
    recipe = claude(bench.directory / "claude", "{base}", tools.url)
    settings = {"permissions": {"ask": ["*"]}}
    spec = {
        "command": recipe.command,
        "env": recipe.environment
        | {"ANTHROPIC_API_KEY": "{secret}", "CLAUDE_CONFIG_DIR": ".claude-settings"},
        "files": {".claude-settings/settings.json": json.dumps(settings)},
        "session_meta": recipe.config["session_meta"],
        "mcp_urls": {"tiny": tools.url},
    }
    names = ["several_turns", "mcp_call", "gate_allows", "gate_denies", "steered"]
    return bench.run("drive_04.py", model.url, *names, BRIDGE_HARNESS=json.dumps(spec))


def test_claude_has_several_turns(on_claude: dict[str, Any]) -> None:
    result = on_claude["several_turns"]
    assert result["replies"] == ["one", "two", "pong"]
    assert (result["ok"], result["stop"]) == (True, "user_closed")


def test_claude_calls_mcp_tools(on_claude: dict[str, Any]) -> None:
    assert on_claude["mcp_call"]["replies"] == ["the tool said: echo: over MCP"]


def test_the_gate_polices_claude(on_claude: dict[str, Any]) -> None:
    assert "allowed" in tool_results(on_claude["gate_allows"])[0]
    assert tool_results(on_claude["gate_denies"]) == ["blocked by policy"]
    assert on_claude["gate_denies"]["replies"][-1] == "still here"


def test_claude_is_steered(on_claude: dict[str, Any]) -> None:
    assert on_claude["steered"]["receipt"] == {"outcome": "injected"}
    assert on_claude["steered"]["ok"] is True
