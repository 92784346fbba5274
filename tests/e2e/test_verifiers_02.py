"""verifiers 0.2.2.dev112, unchanged, with the bridge in place of its runner."""

import json
from typing import Any

import pytest

from tests.peers.node_agents import claude
from tests.peers.servers import Server
from tests.peers.verifiers import BRIDGE, Bench

pytestmark = pytest.mark.peers
SCENARIOS = [
    "once",
    "transcript",
    "once_with_tool",
    "once_fails",
    "resumed",
    "session_turns",
    "session_survives_a_failed_turn",
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, model: Server, tools: Server) -> dict[str, Any]:
    """What every scenario saw on the embedded agent, in one run."""
    bench = Bench("0.2", tmp_path_factory.mktemp("verifiers-0.2"))
    sessions = bench.directory / "sessions"
    spec = {
        "command": [BRIDGE, "agent", "--sessions", str(sessions)],
        "env": {
            "OPENAI_BASE_URL": f"{model.url}/v1",
            "OPENAI_API_KEY": "dummy",
            "OPENAI_MODEL": "scripted",
        },
        "mcp_urls": {"tiny": tools.url},
    }
    file = bench.directory / "spec.json"
    file.write_text(json.dumps(spec))
    return bench.run("drive_02.py", str(file), *SCENARIOS)


def test_one_segment_prints_the_bare_reply(seen: dict[str, Any]) -> None:
    assert (seen["once"]["code"], seen["once"]["stdout"]) == (0, "hello")


def test_a_transcript_is_one_prompt(seen: dict[str, Any], model: Server) -> None:
    assert (seen["transcript"]["code"], seen["transcript"]["stdout"]) == (0, "second")
    prompts = [json.dumps(r["body"]["messages"]) for r in model.bodies("/chat/completions")]
    assert any("[assistant]" in text and "SAY second" in text for text in prompts)


def test_mcp_tools_are_called(seen: dict[str, Any], tools: Server) -> None:
    assert seen["once_with_tool"]["stdout"] == "the tool said: echo: over MCP"
    assert len(tools.calls()) == 1


def test_a_failure_is_an_exit_code_and_words_on_stderr(seen: dict[str, Any]) -> None:
    result = seen["once_fails"]
    assert (result["code"], result["stdout"]) == (1, "")
    assert "400" in result["stderr"].splitlines()[-1]


def test_a_session_file_continues_a_session(seen: dict[str, Any], model: Server) -> None:
    result = seen["resumed"]
    assert (result["first"]["stdout"], result["second"]["stdout"]) == ("eins", "zwei")
    assert result["session"].strip()
    bodies = [r["body"]["messages"] for r in model.bodies("/chat/completions")]
    [second] = [messages for messages in bodies if "SAY zwei" in json.dumps(messages[-1])]
    assert "SAY eins" in json.dumps(second)
    assert [message["role"] for message in second][-3:] == ["user", "assistant", "user"]


def test_a_session_has_several_turns(seen: dict[str, Any]) -> None:
    assert seen["session_turns"]["replies"] == ["opening", "one", "two"]


def test_a_failed_turn_leaves_the_session_usable(seen: dict[str, Any]) -> None:
    result = seen["session_survives_a_failed_turn"]
    assert "400" in result["error"]
    assert result["reply"] == "fine"


@pytest.fixture(scope="module")
def on_claude(
    tmp_path_factory: pytest.TempPathFactory, model: Server, tools: Server
) -> dict[str, Any]:
    """The same of Claude Code's adapter, a node agent."""
    bench = Bench("0.2", tmp_path_factory.mktemp("verifiers-0.2-claude"))
    recipe = claude(bench.directory / "claude", model.url, tools.url)
    spec = {"command": recipe.command, "env": recipe.environment, "mcp_urls": {"tiny": tools.url}}
    file = bench.directory / "spec.json"
    file.write_text(json.dumps(spec))
    return bench.run("drive_02.py", str(file), "once", "session_turns")


def test_a_node_agent_prints_the_bare_reply(on_claude: dict[str, Any]) -> None:
    assert (on_claude["once"]["code"], on_claude["once"]["stdout"]) == (0, "hello")


def test_a_node_agent_s_session_has_several_turns(on_claude: dict[str, Any]) -> None:
    assert on_claude["session_turns"]["replies"] == ["opening", "one", "two"]
