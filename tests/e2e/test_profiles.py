"""Real node agents that are named by their profile alone: a text turn, a tool call through the
proxy, the system prompt where the model sees it, and nothing left."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.host import Host
from tests.peers.node_agents import MORE, NODE, PATHS, base
from tests.peers.processes import wait_until
from tests.peers.servers import Server

pytestmark = pytest.mark.e2e
WIRES = {
    "claude-code": ["anthropic"],
    "codex": ["responses"],
    "pi": ["chat", "responses", "anthropic"],
    "copilot": ["chat", "responses", "anthropic"],
}

EACH = [(name, wire) for name, wires in WIRES.items() for wire in wires]
SLOW = 60.0
SYSTEM = 'The word of the day is "gorse".'


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A daemon that has the installed agents on its PATH and knows of no model."""
    environment = base(tmp_path / "home")
    environment["PATH"] = f"{NODE / '.bin'}:{MORE / '.bin'}:{environment['PATH']}"
    with Host(tmp_path, environment=environment | {"TMPDIR": str(tmp_path)}) as host:
        host.hello()
        yield host
        host.shutdown()


@pytest.mark.parametrize("name, wire", EACH)
def test_it_answers_and_calls_tools_through_our_proxies(
    host: Host, tmp_path: Path, model: Server, tools: Server, name: str, wire: str
) -> None:
    asked, called = len(model.bodies(PATHS[wire])), len(tools.calls())
    settings = {"base_url": f"{model.url}/v1", "name": "scripted", "api_key": "dummy", "wire": wire}
    config: dict[str, Any] = {
        "agent": name,
        "model": settings,
        "mcp_urls": {"tiny": tools.url},
        "system_prompt": SYSTEM,
    }
    opened = host.call("open", SLOW, config=config)
    assert opened["ok"] is True, f"{opened}\n{host.stderr()[-3000:]}"
    [state] = tmp_path.glob("acp-mcp-bridge-*")
    first = host.reply(None, "SAY good morning", seconds=SLOW, system_prompt=SYSTEM)
    # On Anthropic's wire copilot warns of a model that it does not know, in the same breath.
    assert first.strip() == "good morning" or "Warning: No token count multiplier" in first
    assert first.strip().endswith("good morning")
    assert "echo: hi" in host.reply(None, 'USE_TOOL echo {"message": "hi"}', seconds=SLOW)

    [call] = tools.calls()[called:]
    assert (call["name"], call["arguments"]) == ("echo", {"message": "hi"})
    assert call["_meta"]["dev.acp-mcp-bridge/attempt"] == 1
    assert host.event("mcp", tool="echo")
    turns = [r["body"] for r in model.bodies(PATHS[wire])[asked:] if "SAY good" in str(r["body"])]
    assert any("gorse" in str(body) for body in turns)
    assert {event["outcome"] for event in host.events("model")} <= {"complete", "gone"}

    assert host.call("close", SLOW)["ok"] is True
    assert wait_until(lambda: not state.exists(), 10)
