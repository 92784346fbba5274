"""verifiers 0.4.0's own agent harnesses, with the bridge in place of its runner: whole rollouts.

The harness classes are used as they are, on their subprocess runtime and behind their interception
server. tests/peers/verifiers_agents.py says how their installers find the agents that are here.
"""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.peers.servers import Server, mcp_server, model_server
from tests.peers.verifiers import BRIDGE, ROOT, Bench
from tests.peers.verifiers_agents import AGENTS, Installed, in_private

pytestmark = pytest.mark.e2e
KIMI = pytest.param("kimi_code", marks=pytest.mark.heavy)
OPENCLAW = pytest.param("openclaw", marks=pytest.mark.heavy)
EVERY = ["claude_code", "codex", "pi", KIMI, OPENCLAW]
GATED = ["claude_code", "codex", "pi", KIMI]
ON_CHAT = ["pi", KIMI, OPENCLAW]
EMPTY_CONTENT = {"model": {"tool_call_content": "empty"}}
SLOW_START = {"start_timeout": 240}


@dataclass(frozen=True)
class Run:
    """A harness's rollouts, and what stood around them."""

    agent: Installed
    bench: Bench
    model: Server
    tools: Server
    results: dict[str, Any]

    def records(self, kind: str) -> list[dict[str, Any]]:
        """Those of a kind in the bridge's traces: the daemons', and the lone model proxy's."""
        files = [self.bench.directory / f"{name}.trace" for name in ("daemon", "model")]
        text = "".join(file.read_text() for file in files if file.exists())
        records = [json.loads(line) for line in text.splitlines()]
        return [record for record in records if record.get("kind") == kind]

    def said(self, scenario: str, role: str) -> list[str]:
        """What verifiers' own trace has of a role, as text."""
        messages = self.results[scenario]["messages"]
        return [json.dumps(m["content"]) for m in messages if m["role"] == role and m["content"]]

    def replayed(self) -> list[dict[str, Any]]:
        """The assistant messages in requests, as the model server got them."""
        bodies = [request["body"] for request in self.model.bodies(self.agent.wire)]
        messages = [m for body in bodies for m in body.get("messages") or body.get("input") or []]
        return [message for message in messages if message.get("role") == "assistant"]


@contextlib.contextmanager
def mcp_proxy(directory: Path, url: str) -> Iterator[str]:
    """The bridge's MCP proxy alone, before one server; the URL for it."""
    file = directory / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"tiny": {"url": url}}}))
    command = [BRIDGE, "mcp", "--servers", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["servers"]["tiny"]
        finally:
            process.terminate()


def specification(
    agent: Installed, directory: Path, model_url: str, tool_url: str
) -> dict[str, Any]:
    """What drive_agents.py is told."""
    scenarios = {"turns": ["SAY good morning", agent.echo("over MCP"), "SAY good night"]}
    if agent.gate != "cannot":
        scenarios["gate"] = [agent.echo("forbidden"), "SAY still here"]
    settings = directory / "bridge.json"
    settings.write_text(json.dumps({"defaults": EMPTY_CONTENT | SLOW_START}))
    bridge = {"BRIDGE_CONFIG": str(settings), "BRIDGE_RECORD": str(directory / "daemon.trace")}
    alone = [BRIDGE, "model", "--tool-call-content", "empty"]
    return {
        "config": {"id": agent.harness, "version": agent.version, "env": agent.env | bridge},
        "pins": agent.pins,
        "model": agent.model,
        "model_url": model_url,
        "tool_url": tool_url,
        "proxy": [*alone, "--record", str(directory / "model.trace")] * agent.model_in_file,
        "scenarios": {
            name: {"turns": turns, "policed": name == "gate" or agent.gate == "must"}
            for name, turns in scenarios.items()
        },
    }


def rollouts(version: str, agent: Installed, directory: Path) -> Run:
    """All of one harness's, before a model server that refuses null content."""
    bench = Bench(version, directory)
    private = directory / "private"
    agent.lay(private)
    with contextlib.ExitStack() as stack:
        model = stack.enter_context(model_server(directory / "model.ndjson", strict="null"))
        tools = stack.enter_context(mcp_server(directory / "mcp.ndjson"))
        # Its own daemon stands before what the harness tells it of, a proxy before the rest.
        url = stack.enter_context(mcp_proxy(directory, tools.url)) if agent.mcp_in_file else ""
        file = directory / "spec.json"
        file.write_text(json.dumps(specification(agent, directory, model.url, url or tools.url)))
        before = in_private(private, directory, ROOT)
        results = bench.run("drive_agents.py", str(file), before=before)
    return Run(agent, bench, model, tools, results)


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One harness's rollouts."""
    agent = AGENTS[request.param]()
    return rollouts("0.4", agent, tmp_path_factory.mktemp(agent.harness))


@pytest.mark.parametrize("run", EVERY, indirect=True)
def test_the_rollout_ends_as_its_user_ends_it(run: Run) -> None:
    for result in run.results.values():
        assert result["errors"] == []
        assert (result["ok"], result["stop"]) == (True, "user_closed")
    first, called, last = run.results["turns"]["replies"]
    assert first.endswith("good morning")  # pi's MCP client says before that it is connected
    assert called.startswith("the tool said: ")
    assert "echo: over MCP" in called
    assert last == "good night"


@pytest.mark.parametrize("run", EVERY, indirect=True)
def test_verifiers_trace_holds_the_turns(run: Run) -> None:
    morning, *others = run.said("turns", "assistant")
    assert morning == '"good morning"'
    assert others[-1] == '"good night"'
    asked = " ".join(run.said("turns", "user"))
    assert asked.index("SAY good morning") < asked.index("over MCP") < asked.index("SAY good night")
    [returned] = run.said("turns", "tool")
    assert "echo: over MCP" in returned
    assert run.results["turns"]["turns"] >= 4


@pytest.mark.parametrize("run", EVERY, indirect=True)
def test_the_tool_is_called_once_through_our_proxy(run: Run) -> None:
    [call] = run.tools.calls()
    assert (call["name"], call["arguments"]) == ("echo", {"message": "over MCP"})
    assert call["_meta"]["dev.acp-mcp-bridge/attempt"] == 1
    assert call["_meta"]["dev.acp-mcp-bridge/idempotency-key"]


@pytest.mark.parametrize("run", GATED, indirect=True)
def test_the_tool_gate_denies_a_call_and_the_rollout_goes_on(run: Run) -> None:
    denied, after = run.results["gate"]["replies"]
    assert denied.endswith("the tool said: blocked by policy")
    assert after == "still here"
    assert run.said("gate", "tool") == ['"blocked by policy"']


@pytest.mark.parametrize("run", EVERY, indirect=True)
def test_every_model_call_goes_through_our_proxy(run: Run) -> None:
    """More pass it than the model gets: after the rollout's end verifiers refuses them."""
    paths = [record["data"]["target"].partition("?")[0] for record in run.records("request")]
    passed = [path for path in paths if path.endswith(run.agent.wire)]
    turns = sum(result["turns"] for result in run.results.values())
    assert turns <= len(run.model.bodies(run.agent.wire)) <= len(passed)


@pytest.mark.parametrize("run", ON_CHAT, indirect=True)
def test_null_content_is_mended_on_the_way(run: Run) -> None:
    changes = [change for record in run.records("rewrite") for change in record["data"]["changes"]]
    assert changes
    assert {(change["before"], change["after"]) for change in changes} == {("null", '""')}
    with_calls = [message for message in run.replayed() if message.get("tool_calls")]
    assert with_calls
    assert {message["content"] for message in with_calls} == {""}


@pytest.mark.parametrize("run", EVERY, indirect=True)
def test_no_assistant_message_arrives_without_content(run: Run) -> None:
    assert run.replayed()
    assert all(message.get("content") is not None for message in run.replayed())


@pytest.mark.parametrize("run", EVERY, indirect=True)
def test_verifiers_runner_is_never_started(run: Run) -> None:
    assert run.bench.scripts() == [run.bench.script]


@pytest.mark.parametrize("run", EVERY, indirect=True)
def test_each_agent_ends_when_it_is_let_go(run: Run) -> None:
    """That nothing else is left either is what Bench.run looks at."""
    ends = [record["data"] for record in run.records("exit")]
    assert [end["exit_code"] for end in ends] == [0] * len(run.results)


@pytest.mark.heavy
def test_verifiers_02_resumes_its_agent_in_a_process_for_each_turn(tmp_path: Path) -> None:
    """Its harness for Kimi Code, which keeps a session over runs of `once`."""
    agent = replace(AGENTS["kimi_code"](), gate="cannot")  # it has none
    run = rollouts("0.2", agent, tmp_path)
    test_the_rollout_ends_as_its_user_ends_it(run)
    test_verifiers_trace_holds_the_turns(run)
    test_the_tool_is_called_once_through_our_proxy(run)
    test_null_content_is_mended_on_the_way(run)
    test_verifiers_runner_is_never_started(run)
    assert [end["data"]["exit_code"] for end in run.records("exit")] == [0] * 3
