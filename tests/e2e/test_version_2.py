"""The two real agents that serve ACP version 2, spoken with in it; and what the checker says."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.matrix.agents import AGENTS
from tests.e2e.matrix.desk import ECHO, Desk, Room
from tests.peers.host import DAEMON, Host
from tests.peers.node_agents import RECIPES
from tests.peers.processes import wait_until
from tests.peers.servers import Server

pytestmark = pytest.mark.e2e
SLOW_START = 30.0
BOTH = ["claude-code", "codex"]


class Desk2(Desk):
    """A desk whose agent is asked for version 2."""

    @property
    def config(self) -> dict[str, Any]:
        return super().config | {"protocol_version": 2}


def faults(trace: Path) -> list[str]:
    """What `trace check` finds, but what is merely worth knowing."""
    done = subprocess.run(
        [DAEMON[0], "trace", "check", "--json", "--least", "warning", str(trace)],
        capture_output=True,
        text=True,
        check=False,
    )
    return [str(finding) for finding in json.loads(done.stdout)]


@pytest.fixture
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    trace = tmp_path / "recorded"
    with (
        Room(tmp_path) as room,
        Desk2(room, AGENTS[request.param], tmp_path / "desk") as desk,
    ):
        desk.arguments = ["--record", str(trace)]
        yield desk
        desk.end()
    assert faults(trace) == []


@pytest.mark.parametrize("name", ["pi", "copilot"])
def test_an_agent_of_version_1_is_offered_2_and_loses_nothing(
    name: str, tmp_path: Path, model: Server, tools: Server
) -> None:
    recipe = RECIPES[name](tmp_path / "home", model.url, tools.url)
    with Host(tmp_path, environment=recipe.environment) as host:
        host.hello()
        config = {"command": recipe.command, "protocol_version": 2} | recipe.config
        assert host.call("open", SLOW_START, config=config)["result"]["protocol_version"] == 1
        assert host.prompt(None, "SAY hello", seconds=SLOW_START)["result"]["reply"] == "hello"
        host.shutdown()


@pytest.mark.parametrize("desk", BOTH, indirect=True)
def test_two_turns_a_tool_and_the_end(desk: Desk) -> None:
    config = desk.config
    opened = desk.host.call("open", SLOW_START, config=config)
    assert opened["result"]["protocol_version"] == 2
    assert opened["result"]["modes"]["currentModeId"]
    assert desk.turn("SAY good morning")["result"]["reply"].strip() == "good morning"
    assert desk.turn("SAY good night")["result"]["reply"].strip() == "good night"
    [second] = [str(r["body"]) for r in desk.asked() if "SAY good night" in str(r["body"])]
    assert "SAY good morning" in second.partition("SAY good night")[0]
    assert "echo: hi" in desk.turn(ECHO)["result"]["reply"]
    [call] = desk.calls()
    assert (call["name"], call["arguments"]) == ("echo", {"message": "hi"})
    updates = [event["update"] for event in desk.host.events("update", turn=3)]
    calls = [u["sessionUpdate"] for u in updates if "toolCallId" in u]
    assert calls[0] == "tool_call"
    assert set(calls[1:]) == {"tool_call_update"}
    assert updates[-1]["state"] == "idle"
    assert desk.host.events("turn") == []
    assert desk.children()
    assert desk.host.call("close", SLOW_START)["ok"] is True
    assert wait_until(lambda: not desk.children(), 8), desk.children()


@pytest.mark.parametrize("desk", ["claude-code"], indirect=True)
def test_permissions_are_given_and_refused(desk: Desk) -> None:
    for outcome, calls in (("deny", 0), ("allow", 1)):
        turn = desk.start(ECHO, permission="ask")
        event = desk.host.event("permission", SLOW_START, turn=2 - (outcome == "deny"))
        assert event["tool_call"]["rawInput"] == {"message": "hi"}
        answer = {"request_id": event["request_id"], "outcome": outcome}
        assert desk.host.call("permission", **answer)["ok"] is True
        assert desk.host.answer(turn, SLOW_START)["ok"] is True
        assert len(desk.calls()) == calls


@pytest.mark.parametrize("desk", BOTH, indirect=True)
def test_a_cancel_in_mid_stream_reaches_the_model(desk: Desk) -> None:
    turn = desk.start("SLOW 60")
    desk.host.text_event("w1", SLOW_START)
    desk.host.call("cancel", SLOW_START)
    response = desk.host.answer(turn, SLOW_START)
    assert (response["ok"], response["result"]["stop_reason"]) == (True, "cancelled")
    assert response["agent_stop_reason"] == "cancelled"
    number = next(r["number"] for r in desk.asked() if "SLOW 60" in str(r["body"]))
    assert wait_until(lambda: desk.model.outcome(number) == "left"), desk.model.outcome(number)
    assert desk.turn("SAY and on")["result"]["reply"].strip() == "and on"


@pytest.mark.parametrize("desk", BOTH, indirect=True)
def test_a_session_is_loaded_in_a_new_process(desk: Desk) -> None:
    config = desk.config
    opened = desk.host.call("open", SLOW_START, config=config)["result"]
    desk.turn("SAY remember me")
    desk.host.call("close", SLOW_START)
    ident = opened["session_id"]
    loaded = desk.host.call("load", SLOW_START, session_id=ident, config=config)
    assert loaded["result"]["session_id"] == ident
    replayed = [event["update"] for event in desk.host.events("update", replay=True)]
    assert "remember me" in str([u for u in replayed if u["sessionUpdate"].startswith("agent_")])
    assert desk.turn("SAY here")["result"]["reply"].strip() == "here"


@pytest.mark.parametrize("desk", BOTH, indirect=True)
def test_a_session_that_is_ended_in_mid_turn_leaves_no_process(desk: Desk) -> None:
    turn = desk.start("SLOW 60")
    desk.host.text_event("w1", SLOW_START)
    assert desk.host.call("close", SLOW_START)["ok"] is True
    assert desk.host.answer(turn, SLOW_START)["result"]["stop_reason"] in ("cancelled", None)
    assert wait_until(lambda: not desk.children(), 8), desk.children()
