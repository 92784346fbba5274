"""A model that refuses, fails or says nothing: what the agent makes of it, what the host hears."""

import json
from typing import Any

from tests.e2e.matrix.desk import ECHO, Desk, NotOffered
from tests.e2e.matrix.scenario import scenario

WORDS = "a scripted failure"
HISTORY = {"chat": "messages", "anthropic": "messages", "responses": "input", "gemini": "contents"}


@scenario("Null content is mended for a strict model")
def null(desk: Desk) -> str:
    if desk.agent.wire != "chat":
        raise NotOffered(f"it is driven on the {desk.agent.wire} wire, which has no such content")
    desk.strict = "null"
    mend = {**desk.config["model"], "tool_call_content": "empty"}
    reply = desk.turn(ECHO, model=mend)["result"]["reply"]
    assert "echo: hi" in reply, f"the reply was {reply!r}"
    silent = desk.response(desk.start("REPLY_NULL", turn_timeout=10))
    desk.turn("SAY fine")
    said = [m for m in desk.asked()[-1]["body"]["messages"] if m["role"] == "assistant"]
    assert said, "the history has no assistant message"
    assert all(isinstance(message["content"], str) for message in said), str(said)
    changes = [c for e in desk.host.events("model") for c in e.get("changes", ())]
    assert silent["outcome"] != "model_failed", silent.get("model_errors")
    return f"{len(changes)} mended" if changes else "it sends none"


def _errors(response: dict[str, Any]) -> list[tuple[int, str, bool]]:
    return [
        (e["status"], e["error"], e["recovered"])
        for e in response["model_errors"]
        if e["purpose"] == "turn"
    ]


def _told(response: dict[str, Any]) -> str:
    """How a turn tells its end, in the words of the table."""
    said = response.get("agent_stop_reason") or response.get("agent_code") or "nothing"
    shown = "with text" if (response["result"]["reply"] or "").strip() else "no text"
    outcome = response["outcome"]
    how = f"error {response['code']}" if not response["ok"] else f"`{said}`, {shown}"
    return f"{how}; outcome `{outcome}`"


@scenario("Model answers 400", tells=True)
def error_400(desk: Desk) -> str:
    response = desk.response(desk.start("FAIL 400"))
    errors = _errors(response)
    assert errors, "no model error was told"
    assert errors[0][:2] == (400, WORDS), errors
    recovered = all(error[2] for error in errors)
    expected = ("completed",) if recovered else ("model_failed", "failed")
    assert response["outcome"] in expected, response["outcome"]
    return _told(response) + (" (asked again by itself)" if recovered else "")


@scenario("Model answers 500 once", tells=True)
def error_500(desk: Desk) -> str:
    response = desk.response(desk.start("FAIL 500"))
    errors = _errors(response)
    assert [error[:2] for error in errors] == [(500, WORDS)], errors
    reply = response["result"]["reply"].strip()
    assert response["outcome"] == ("completed" if errors[0][2] else "model_failed"), errors
    assert "pong" in reply, f"the reply was {reply!r}"
    return "asked again by itself" + ("" if reply == "pong" else ", with words on it in the reply")


def _generations(desk: Desk) -> list[dict[str, Any]]:
    """The bodies of the turn's own requests: a title's names another model, or offers no tool."""
    bodies = (request["body"] for request in desk.asked("EMPTY"))
    return [b for b in bodies if b.get("model", "scripted") == "scripted" and b.get("tools")]


@scenario("Model answers nothing", tells=True)
def empty(desk: Desk) -> str:
    response = desk.response(desk.start("REPLY_EMPTY", turn_timeout=20))
    told = _told(response)
    assert response["outcome"] in ("empty", "completed", "timeout", "failed", "cancelled"), told
    turns = [e for e in desk.host.events("model") if e["purpose"] == "turn"]
    again = sum(1 for event in turns if event.get("again"))
    # An agent that asks for more adds to what it said; one that only tries again does not.
    sizes = [len(json.dumps(body[HISTORY[desk.agent.wire]])) for body in _generations(desk)]
    more = sum(1 for size in sizes if size > sizes[0])
    assert again == more, f"{more} questions for more, {again} of them marked"
    words = [f"asked {len(turns)} times"] if len(turns) > 1 else []
    words += [f"{again} marked `again`"] if again else []
    if response["outcome"] == "completed":
        assert (response["result"]["reply"] or "").strip(), "completed without a word"
    return "; ".join([told, *words])
