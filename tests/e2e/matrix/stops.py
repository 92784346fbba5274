"""What ends or bends a turn from outside: cancel, steer, close."""

from tests.e2e.matrix.desk import Desk, NotOffered
from tests.e2e.matrix.scenario import scenario
from tests.peers.processes import wait_until


def _goes_on(desk: Desk) -> None:
    reply = desk.turn("SAY and on")["result"]["reply"].strip()
    assert reply.endswith("and on"), f"the turn after it said {reply!r}"


@scenario("Cancel in the stream")
def cancel_stream(desk: Desk) -> str:
    turn = desk.start("SLOW 60")
    desk.host.text_event("w1", desk.agent.patience)
    desk.ask("cancel")
    response = desk.response(turn)
    assert response["ok"] is True, response.get("error")
    reason = response["result"]["stop_reason"]
    assert reason == "cancelled", f"stop_reason {reason!r}"
    assert desk.left("SLOW 60"), "the model's answer goes on"
    _goes_on(desk)
    return ""


@scenario("Cancel in a tool call")
def cancel_tool(desk: Desk) -> str:
    turn = desk.start(f'USE_TOOL {desk.agent.wait} {{"seconds": 60}}')
    assert wait_until(desk.calls, desk.agent.patience), "the tool was not called"
    desk.ask("cancel")
    response = desk.response(turn)
    assert response["ok"] is True, response.get("error")
    reason = response["result"]["stop_reason"]
    assert reason == "cancelled", f"stop_reason {reason!r}"
    ended = wait_until(lambda: any("cancelled" in r for r in desk.tools.log()), 10)
    assert ended, "the tool call goes on"
    _goes_on(desk)
    return "the call is left open" if response.get("open_tool_calls") else ""


@scenario("Steer a running turn")
def steer(desk: Desk) -> str:
    turn = desk.start(f'USE_TOOL {desk.agent.wait} {{"seconds": 2}}')
    assert wait_until(desk.calls, desk.agent.patience), "the tool was not called"
    receipt = desk.ask("steer", message="SAY steered")
    assert receipt.get("outcome") != "promptRequired", f"the receipt was {receipt}"
    reply = desk.response(turn)["result"]["reply"].strip()
    assert desk.asked("SAY steered"), "the message did not reach the model"
    assert "steered" in reply, f"the reply was {reply!r}"
    return ""


@scenario("Close leaves nothing running")
def close(desk: Desk) -> str:
    desk.says("hello")
    assert desk.children(), "no process of the agent was seen"
    desk.ask("close")
    assert desk.all_gone(), f"left: {desk.children()}"
    return ""


@scenario("Close in mid-turn leaves nothing running")
def close_in_turn(desk: Desk) -> str:
    turn = desk.start("SLOW 60")
    desk.host.text_event("w1", desk.agent.patience)
    desk.ask("close")
    reason = desk.response(turn)["result"]["stop_reason"]
    assert reason in ("cancelled", None), f"stop_reason {reason!r}"
    assert desk.all_gone(), f"left: {desk.children()}"
    return ""


def _restored(desk: Desk, operation: str) -> None:
    """A session of an agent that has ended, in a new daemon's agent."""
    session = desk.open()["session_id"]
    desk.says("good morning")
    desk.again()
    opened = desk.ask(operation, session_id=session, config=desk.config)
    assert opened["session_id"] == session, opened["session_id"]
    desk.says("good night")
    request = str(desk.asked("SAY good night")[0]["body"])
    assert "SAY good morning" in request, "the conversation is not there"


@scenario("session/load in a new process")
def load(desk: Desk) -> str:
    _restored(desk, "load")
    replayed = desk.host.events("update", replay=True)
    assert "good morning" in str(replayed), "the history was not replayed"
    own = {event["side"] for event in desk.host.events("model", purpose="side")}
    return f"asks the model on its own: {', '.join(sorted(own))}" if own else ""


@scenario("session/resume in a new process")
def resume(desk: Desk) -> str:
    can = desk.open()["capabilities"].get("sessionCapabilities") or {}
    if can.get("resume") is None:
        raise NotOffered("sessionCapabilities.resume")
    desk.ask("close")
    _restored(desk, "resume")
    return ""
