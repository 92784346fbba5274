"""Real node agents that are named by their profile alone: a text turn, a tool call through the
proxy, the system prompt where the model sees it, and nothing left."""

import contextlib
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


@contextlib.contextmanager
def daemon(folder: Path) -> Iterator[Host]:
    """A daemon that has the installed agents on its PATH and knows of no model."""
    environment = base(folder / "home")
    environment["PATH"] = f"{NODE / '.bin'}:{MORE / '.bin'}:{environment['PATH']}"
    with Host(folder, environment=environment | {"TMPDIR": str(folder)}) as host:
        host.hello()
        yield host


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with daemon(tmp_path) as host:
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


@pytest.mark.parametrize("name", WIRES)
def test_a_session_in_a_kept_state_is_loaded_by_another_daemon(
    tmp_path: Path, model: Server, name: str
) -> None:
    settings = {"base_url": f"{model.url}/v1", "name": "scripted", "api_key": "dummy"}
    options = {"state": str(tmp_path / "state")}
    config = {"agent": name, "model": settings, "agent_options": options}
    with daemon(tmp_path) as first:
        opened = first.call("open", SLOW, config=config)
        assert opened["ok"] is True, f"{opened}\n{first.stderr()[-3000:]}"
        first.reply(None, "SAY good morning", seconds=SLOW)
        first.shutdown()
    wire = PATHS[WIRES[name][0]]
    asked = len(model.bodies(wire))
    with daemon(tmp_path) as second:
        session = opened["result"]["session_id"]
        loaded = second.call("load", SLOW, session_id=session, config=config)
        assert loaded["ok"] is True, f"{loaded}\n{second.stderr()[-3000:]}"
        assert second.reply(None, "SAY good night", seconds=SLOW).strip() == "good night"
        second.shutdown()
    assert any("good morning" in str(r["body"]) for r in model.bodies(wire)[asked:])


@pytest.mark.parametrize("name, tool", [("pi", "bash"), ("claude-code", "Bash")])
def test_a_tool_that_is_switched_off_is_not_offered_to_the_model(
    host: Host, model: Server, name: str, tool: str
) -> None:
    wire = PATHS[WIRES[name][0]]
    settings = {"base_url": f"{model.url}/v1", "name": "scripted", "api_key": "dummy"}
    offered: list[str] = []
    for off in ([], [tool]):
        asked = len(model.bodies(wire))
        config = {"agent": name, "model": settings, "agent_options": {"disabled_tools": off}}
        session = f"without-{len(off)}"
        host.reply(None, "SAY hello", seconds=SLOW, session=session, **config)
        offered.append(str([r["body"].get("tools") for r in model.bodies(wire)[asked:]]))
        assert host.call("close", SLOW, session=session)["ok"] is True
    name_of_it = f"'name': '{tool}'"
    assert [name_of_it in tools for tools in offered] == [True, False]
