"""Real node agents through the daemon, every step seen in the servers' logs too."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.host import Host
from tests.peers.node_agents import RECIPES, Recipe
from tests.peers.processes import marked, wait_until
from tests.peers.servers import Server

pytestmark = pytest.mark.peers
MORE = [pytest.param(name, marks=pytest.mark.e2e) for name in ("codex", "copilot")]
EVERY = ["claude", "pi", *MORE]
ASKING = ["claude", pytest.param("copilot", marks=pytest.mark.e2e)]
ECHO = 'USE_TOOL echo {"message": "hi"}'
SLOW_START = 30.0


class Desk:
    """A host, one agent behind its daemon, and the servers that the agent reaches."""

    def __init__(self, host: Host, recipe: Recipe, model: Server, tools: Server) -> None:
        self.host, self.recipe, self.model, self.tools = host, recipe, model, tools
        self.before = len(tools.calls()), len(model.bodies(recipe.wire))

    @property
    def config(self) -> dict[str, Any]:
        servers = {"tiny": self.tools.url} if self.recipe.takes_mcp else {}
        return {"mcp_urls": servers} | self.recipe.config

    def start(self, text: str, **more: Any) -> int | None:
        return self.host.start(self.recipe.command, text, **self.config, **more)

    def turn(self, text: str, **more: Any) -> dict[str, Any]:
        response = self.host.answer(self.start(text, **more), SLOW_START)
        assert response["ok"] is True, f"{response}\n{self.host.stderr()[-3000:]}"
        return response["result"]

    def calls(self) -> list[dict[str, Any]]:
        """The tool calls that reached the MCP server in this test."""
        return self.tools.calls()[self.before[0] :]

    def asked(self) -> list[dict[str, Any]]:
        """The requests that reached the model in this test."""
        return self.model.bodies(self.recipe.wire)[self.before[1] :]

    def children(self) -> list[int]:
        """The daemon's agents and theirs."""
        return [pid for pid in marked(self.host.marker) if pid not in self.own]

    own: frozenset[int] = frozenset()


@pytest.fixture
def desk(
    request: pytest.FixtureRequest, tmp_path: Path, model: Server, tools: Server
) -> Iterator[Desk]:
    recipe = RECIPES[request.param](tmp_path / "home", model.url, tools.url)
    work = tmp_path / "work"
    work.mkdir()
    with Host(work, environment=recipe.environment) as host:
        host.hello()
        desk = Desk(host, recipe, model, tools)
        desk.own = frozenset(marked(host.marker))
        yield desk
        host.shutdown()


@pytest.mark.parametrize("desk", EVERY, indirect=True)
def test_several_turns_of_one_conversation(desk: Desk) -> None:
    assert desk.turn("SAY good morning")["reply"].strip() == "good morning"
    assert desk.turn("SAY good night")["reply"].strip() == "good night"
    bodies = [str(request["body"]) for request in desk.asked()]
    [second] = [body for body in bodies if "SAY good night" in body]
    assert "SAY good morning" in second.partition("SAY good night")[0]
    updates = desk.host.events("update")
    assert {event["turn"] for event in updates if "agent_message" in str(event)} >= {1, 2}


@pytest.mark.parametrize("desk", EVERY, indirect=True)
def test_a_tool_of_an_mcp_server_is_called(desk: Desk) -> None:
    reply = desk.turn(ECHO)["reply"]
    assert "the tool said: " in reply
    assert "echo: hi" in reply  # codex puts its own words between
    [call] = desk.calls()
    assert (call["name"], call["arguments"]) == ("echo", {"message": "hi"})
    if desk.recipe.takes_mcp:  # through the proxy: one attempt, with its key
        assert call["_meta"]["dev.acp-mcp-bridge/attempt"] == 1
        assert call["_meta"]["dev.acp-mcp-bridge/idempotency-key"]
        assert desk.host.event("mcp")
    kinds = {event["update"]["sessionUpdate"] for event in desk.host.events("update")}
    assert kinds & {"tool_call", "tool_call_update"}


@pytest.mark.parametrize("desk", ASKING, indirect=True)
def test_a_permission_that_is_given_lets_it_run(desk: Desk) -> None:
    turn = desk.start(ECHO, permission="ask")
    event = desk.host.event("permission", SLOW_START)
    assert desk.calls() == []
    request = event["request_id"]
    assert desk.host.call("permission", request_id=request, outcome="allow")["ok"] is True
    assert "the tool said: echo: hi" in desk.host.answer(turn, SLOW_START)["result"]["reply"]
    assert len(desk.calls()) == 1


@pytest.mark.parametrize("desk", ASKING, indirect=True)
def test_a_permission_that_is_refused_does_not(desk: Desk) -> None:
    turn = desk.start(ECHO, permission="ask")
    request = desk.host.event("permission", SLOW_START)["request_id"]
    assert desk.host.call("permission", request_id=request, outcome="deny")["ok"] is True
    assert desk.host.answer(turn, SLOW_START)["ok"] is True
    assert desk.calls() == []
    assert desk.turn("SAY still here")["reply"].strip().endswith("still here")


@pytest.mark.parametrize("desk", EVERY, indirect=True)
def test_a_cancel_in_mid_stream_reaches_the_model(desk: Desk) -> None:
    turn = desk.start("SLOW 60")
    desk.host.text_event("w1", SLOW_START)
    desk.host.call("cancel", SLOW_START)
    response = desk.host.answer(turn, SLOW_START)
    assert (response["ok"], response["result"]["stop_reason"]) == (True, "cancelled")
    number = next(r["number"] for r in desk.asked() if "SLOW 60" in str(r["body"]))
    assert wait_until(lambda: desk.model.outcome(number) == "left"), desk.model.outcome(number)
    assert desk.turn("SAY and on")["reply"].strip() == "and on"


@pytest.mark.parametrize("desk", EVERY, indirect=True)
def test_a_closed_session_leaves_no_process(desk: Desk) -> None:
    desk.turn("SAY hello")
    assert desk.children()
    assert desk.host.call("close", SLOW_START)["ok"] is True
    assert wait_until(lambda: not desk.children(), 8), desk.children()


@pytest.mark.parametrize("desk", EVERY, indirect=True)
def test_a_session_that_is_ended_in_mid_turn_leaves_none_either(desk: Desk) -> None:
    turn = desk.start("SLOW 60")
    desk.host.text_event("w1", SLOW_START)
    assert desk.host.call("close", SLOW_START)["ok"] is True
    assert desk.host.answer(turn, SLOW_START)["result"]["stop_reason"] in ("cancelled", None)
    assert wait_until(lambda: not desk.children(), 8), desk.children()
