"""What an agent hides of its model, on the real daemon: the turn's result says it all the same."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.agent import scripted
from tests.peers.host import Host
from tests.peers.servers import Server, model_server
from tests.session.room import FOUR

KEY = "key-CANARY-0123456789"
_lengths = itertools.count()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with model_server(tmp_path_factory.mktemp("model") / "requests.ndjson") as server:
        yield server


@pytest.fixture
def host(tmp_path: Path, model: Server) -> Iterator[Host]:
    """A daemon whose agents have the scripted model, through its proxy."""
    environment = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": KEY}
    with Host(tmp_path, environment=environment) as host:
        host.hello()
        yield host
        host.shutdown()
        assert "CANARY" not in json.dumps(host.frames) + host.stderr()


def ask(text: str, **more: Any) -> str:
    """The directive that asks the model, and keeps what it said to itself.

    The scripted model fails once for each place in a conversation: each has another length."""
    before = [{"role": "user", "content": "-"}] * next(_lengths)
    body = {"messages": [*before, {"role": "user", "content": text}], **more}
    return f"quiet $OPENAI_BASE_URL/chat/completions {json.dumps(body)}"


def test_an_error_that_ends_in_silence_is_a_failed_turn(host: Host) -> None:
    response = host.prompt(scripted(), ask("FAIL 400 in silence"))
    assert (response["ok"], response["outcome"]) == (True, "model_failed")
    assert (response["agent_stop_reason"], response["result"]["stop_reason"]) == ("end_turn",) * 2
    assert set(response["result"]) == FOUR
    (error,) = response["model_errors"]
    event = host.events("model", status=400)[0]
    assert error == {
        "exchange": event["exchange"],
        "status": 400,
        "error": "a scripted failure",
        "purpose": "turn",
        "side": None,
        "recovered": False,
    }
    assert event["error"] == "a scripted failure"
    after = host.prompt(None, f"{ask('SAY fine')}\nsay fine")
    assert (after["outcome"], after["model_errors"]) == ("completed", [])


def test_an_error_that_a_second_try_mended_is_told_and_the_turn_is_fine(host: Host) -> None:
    again = ask("FAIL 503 and again")
    response = host.prompt(scripted(), f"{again}\nsay Retrying...\n{again}\nsay done")
    assert (response["outcome"], response["result"]["reply"]) == ("completed", "Retrying...done")
    (error,) = response["model_errors"]
    assert (error["status"], error["recovered"]) == (503, True)


def test_a_turn_that_only_chattered_failed_and_keeps_its_text(host: Host) -> None:
    response = host.prompt(scripted(), f"{ask('FAIL 503 for good')}\nsay Retrying...")
    assert (response["outcome"], response["result"]["reply"]) == ("model_failed", "Retrying...")


def test_a_model_that_said_nothing_makes_an_empty_turn(host: Host) -> None:
    response = host.prompt(scripted(), ask("REPLY_EMPTY"))
    assert (response["outcome"], response["model_errors"]) == ("empty", [])
    nothing = host.prompt(None, "stop end_turn")
    assert (nothing["outcome"], nothing["model_errors"]) == ("completed", [])


def test_a_side_call_that_failed_is_told_apart(host: Host) -> None:
    contents = ["You are a title generator", *["-"] * 50, "FAIL 404 title"]
    side = ask("", messages=[{"role": "user", "content": text} for text in contents])
    response = host.prompt(scripted(), f"{ask('SAY hi', tools=[])}\n{side}\nsay hi")
    assert response["outcome"] == "completed"
    (error,) = response["model_errors"]
    assert (error["purpose"], error["side"], error["status"]) == ("side", "title", 404)
    assert host.events("model", side="title", purpose="side")


def test_a_queued_turn_says_it_too(host: Host) -> None:
    host.prompt(scripted(), "say hi")
    host.call("send", message=ask("FAIL 400 queued"), message_id="m")
    ended = host.event("turn", state="ended")
    assert ended["result"]["outcome"] == "model_failed"
    assert ended["result"]["model_errors"][0]["status"] == 400


def test_where_no_model_call_passes_nothing_is_claimed(host: Host) -> None:
    response = host.prompt(scripted(), ask("FAIL 400 unseen"), model_proxy="off")
    assert "model_errors" not in response
    assert response["outcome"] == "completed"


def test_of_an_agent_that_sessions_share_nothing_is_claimed(host: Host) -> None:
    assert "model_errors" in host.prompt(scripted(), "say hi")
    host.call("fork", new_session="other")
    for session in ("", "other"):
        shared = host.answer(host.start(None, ask("FAIL 400 shared"), session=session))
        assert "model_errors" not in shared
    host.call("close", session="other")
    assert "model_errors" in host.prompt(None, "say hi")


def test_a_tool_call_without_an_end_is_named(host: Host) -> None:
    turn = host.start(scripted(), "tool one completed\ntool two in_progress\nwait cancel\nsay x")
    host.wait(lambda: len(host.events("update")) == 2)
    host.call("cancel")
    response = host.answer(turn)
    assert (response["outcome"], response["open_tool_calls"]) == ("cancelled", ["two"])


def test_the_first_generation_hears_what_the_model_answered(tmp_path: Path, model: Server) -> None:
    environment = {"OPENAI_BASE_URL": f"{model.url}/v1"}
    with Host(tmp_path, generation="A", environment=environment) as host:
        response = host.prompt(scripted(), ask("FAIL 400 legacy"))
        assert response["ok"] is False
        assert response["error"].startswith("the model answered 400: a scripted failure; ")
        host.shutdown()
