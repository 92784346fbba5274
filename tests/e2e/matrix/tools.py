"""Tools: an MCP server's through the proxy, one that is asked twice, permissions, a shell."""

import json
from typing import Any

from tests.e2e.matrix.desk import ECHO, Desk, NotOffered
from tests.e2e.matrix.scenario import scenario

META = "dev.acp-mcp-bridge"


def _echoed(desk: Desk, attempt: int) -> None:
    """The tool was called once through the proxy, and the agent and the host know of it."""
    reply = desk.turn(ECHO)["result"]["reply"]
    assert "echo: hi" in reply, f"the reply was {reply!r}"
    [call] = desk.calls()
    assert (call["name"], call["arguments"]) == ("echo", {"message": "hi"}), call
    assert call["_meta"][f"{META}/attempt"] == attempt, call["_meta"]
    assert call["_meta"][f"{META}/idempotency-key"], call["_meta"]
    kinds = {event["update"]["sessionUpdate"] for event in desk.host.events("update")}
    assert kinds & {"tool_call", "tool_call_update"}, "the agent told of no tool call"


@scenario("MCP tool call through the proxy")
def mcp(desk: Desk) -> str:
    _echoed(desk, attempt=1)
    assert desk.host.event("mcp", tool="echo")
    return ""


@scenario("MCP tool call whose first attempt fails")
def retry(desk: Desk) -> str:
    desk.refusing()
    _echoed(desk, attempt=2)
    attempts = [event["attempt"] for event in desk.host.events("mcp", tool="echo")]
    assert attempts == [1, 2], f"attempts {attempts}"
    return ""


def _permission(desk: Desk, outcome: str) -> dict[str, Any]:
    """The answer to a turn that asked, and was told so."""
    turn = desk.start(ECHO, permission="ask")

    def asked_or_done() -> list[Any]:
        done = [f for f in desk.host.frames if "event" not in f and f.get("id") == turn]
        return desk.host.events("permission") or done

    [first, *_] = desk.host.wait(asked_or_done, desk.agent.patience, "a permission event")
    if "event" not in first:
        raise NotOffered("it never asks")
    assert desk.calls() == [], "the tool was called before the answer"
    desk.ask("permission", request_id=first["request_id"], outcome=outcome)
    response = desk.response(turn)
    assert response["ok"] is True, response.get("error")
    return response


@scenario("Permission that is given")
def allow(desk: Desk) -> str:
    reply = _permission(desk, "allow")["result"]["reply"]
    assert "echo: hi" in reply, f"the reply was {reply!r}"
    assert len(desk.calls()) == 1, f"{len(desk.calls())} calls"
    return ""


@scenario("Permission that is refused")
def deny(desk: Desk) -> str:
    _permission(desk, "deny")
    assert desk.calls() == [], "the tool was called all the same"
    reply = desk.turn("SAY still here")["result"]["reply"].strip()
    assert reply.endswith("still here"), f"the reply was {reply!r}"
    return ""


@scenario("Its own shell tool")
def shell(desk: Desk) -> str:
    name, argument = desk.agent.shell
    line = "echo from-the-shell > proof.txt && cat proof.txt"
    given = json.dumps({argument: line, "description": "writes a line"})
    reply = desk.turn(f"USE_TOOL {name} {given}")["result"]["reply"]
    assert "from-the-shell" in reply, f"the reply was {reply!r}"
    assert (desk.work / "proof.txt").read_text().strip() == "from-the-shell"
    return ""
