"""Case 19: an option is chosen by its kind from those offered, and its own id goes back."""

import json
from typing import Any

import pytest

from tests.cases.conftest import Spawn
from tests.peers.agent import scripted


def option(option_id: Any, kind: str, name: str = "Sure") -> dict[str, Any]:
    return {"optionId": option_id, "name": name, "kind": kind}


YOLO = [option("yolo-1", "allow_always"), option("nope", "reject_once", "No")]
ODD = [option("nope", "reject_always"), option("deny_always", "allow_once", "deny")]


def outcome(text: str) -> Any:
    return json.loads(text)["outcome"]


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        (YOLO, "yolo-1"),
        ([option(42, "allow_once")], 42),
        ([option("42", "allow_once")], "42"),
        (ODD, "deny_always"),
        ([option("two words", "allow_once")], "two words"),
        ([option("жё 北 🎉", "allow_once")], "жё 北 🎉"),
        ([option("", "allow_once")], ""),
        ([option("always", "allow_always"), option("once", "allow_once")], "once"),
        ([option("a", "allow_once"), option("b", "allow_once")], "a"),
        ([option("odd", "ask_again"), option("yes", "allow_once")], "yes"),
        ([{"optionId": "x", "name": "no kind"}, option("yes", "allow_once")], "yes"),
    ],
)
def test_allowing_picks_by_kind(
    spawn: Spawn, options: list[dict[str, Any]], chosen: object
) -> None:
    host = spawn()
    said = outcome(host.reply(scripted(), f"permission {json.dumps(options)}"))
    assert said == {"outcome": "selected", "optionId": chosen}
    host.shutdown()


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        (YOLO, "nope"),
        ([option("always", "reject_always"), option("once", "reject_once")], "once"),
        (ODD, "nope"),
        ([option("yes", "allow_once")], None),
        ([], None),
    ],
)
def test_denying_picks_by_kind_or_cancels(
    spawn: Spawn, options: list[dict[str, Any]], chosen: str | None
) -> None:
    host = spawn()
    prompt = f"permission {json.dumps(options)}"
    said = outcome(host.reply(scripted(), prompt, permission="deny"))
    expected = {"outcome": "selected", "optionId": chosen} if chosen else {"outcome": "cancelled"}
    assert said == expected
    host.shutdown()


@pytest.mark.parametrize("options", [[], [option("nope", "reject_once")], [option("x", "odd")]])
def test_without_an_allowing_option_the_answer_is_cancelled(
    spawn: Spawn, options: list[dict[str, Any]]
) -> None:
    host = spawn()
    said = outcome(host.reply(scripted(), f"permission {json.dumps(options)}"))
    assert said == {"outcome": "cancelled"}
    host.shutdown()


def test_every_generation_allows_by_itself(spawn: Spawn, talk: dict[str, str]) -> None:
    host = spawn(**talk)
    said = outcome(host.reply(scripted(), f"permission {json.dumps(YOLO)}"))
    assert said == {"outcome": "selected", "optionId": "yolo-1"}
    host.shutdown()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("allow", {"outcome": "selected", "optionId": "yolo-1"}),
        ("deny", {"outcome": "selected", "optionId": "nope"}),
        ("cancel", {"outcome": "cancelled"}),
        ({"option_id": "nope"}, {"outcome": "selected", "optionId": "nope"}),
        ({"option_id": "yolo-1"}, {"outcome": "selected", "optionId": "yolo-1"}),
    ],
)
def test_a_host_that_is_asked_decides(
    spawn: Spawn, loop: str, answer: object, expected: dict[str, str]
) -> None:
    host = spawn("--loop", loop)
    host.hello()
    turn = host.start(scripted(), f"permission {json.dumps(YOLO)}", permission="ask")
    event = host.event("permission")
    assert event["options"] == YOLO
    assert event["tool_call"]["toolCallId"] == "call-1"
    assert host.call("permission", request_id=event["request_id"], outcome=answer)["ok"] is True
    assert outcome(host.answer(turn)["result"]["reply"]) == expected
    host.shutdown()


def test_an_option_that_was_not_offered_is_refused_and_the_request_stays_open(
    spawn: Spawn,
) -> None:
    host = spawn()
    host.hello()
    turn = host.start(scripted(), f"permission {json.dumps(YOLO)}", permission="ask")
    request = host.event("permission")["request_id"]
    wrong = host.call("permission", request_id=request, outcome={"option_id": "allow"})
    assert (wrong["ok"], wrong["code"]) == (False, "invalid_request")
    assert host.call("permission", request_id=request, outcome="allow")["ok"] is True
    assert outcome(host.answer(turn)["result"]["reply"])["optionId"] == "yolo-1"
    host.shutdown()
