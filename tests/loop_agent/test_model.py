"""The requests to the model: heads, connections, servers that do not stream, settings."""

import json

import pytest

from bridge.errors import RequestFailed
from bridge.loop_agent.model import Settings
from tests.loop_agent.acp_client import AcpClient
from tests.loop_agent.chat_server import DONE, Answer, ChatServer, Gate, delta, event, text
from tests.loop_agent.conftest import Start


def test_the_key_goes_out_as_a_bearer(agent: AcpClient, chat: ChatServer) -> None:
    chat.answers(text("ok"))
    agent.prompt(agent.new(), "hi")
    assert chat.headers[0]["authorization"] == "Bearer sk-CANARY"
    assert chat.headers[0]["content-type"] == "application/json"


def test_without_a_key_there_is_no_authorization(start: Start, chat: ChatServer) -> None:
    agent = start(environment={"OPENAI_API_KEY": ""})
    chat.answers(text("ok"))
    agent.prompt(agent.new(), "hi")
    assert "authorization" not in chat.headers[0]


@pytest.mark.parametrize("name", ["OPENAI_BASE_URL", "OPENAI_MODEL"])
def test_a_missing_setting_is_named_when_it_is_needed(start: Start, name: str) -> None:
    agent = start(environment={name: ""})
    params = {"sessionId": agent.new(), "prompt": [{"type": "text", "text": "a"}]}
    error = agent.refusal("session/prompt", params)
    assert name in error["data"]["details"]


def test_a_base_url_of_another_kind_is_refused() -> None:
    settings = Settings("ftp://x/v1", "", "m")
    with pytest.raises(RequestFailed) as caught:
        settings.check()
    assert "http" in caught.value.data["details"]


def test_one_connection_serves_many_requests(start: Start, chat: ChatServer) -> None:
    agent = start()
    session, before = agent.new(), chat.connections
    for word in "abc":
        chat.answers(text(word))
        agent.prompt(session, word)
    assert chat.connections == before + 1


def test_an_answer_that_is_not_streamed_is_read_whole(agent: AcpClient, chat: ChatServer) -> None:
    message = {"role": "assistant", "content": "all at once", "reasoning_content": "hm"}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    chat.answers(Answer([json.dumps(body).encode()], kind="application/json"))
    session = agent.new()
    assert agent.prompt(session, "hi")["stopReason"] == "end_turn"
    assert agent.text(session) == "all at once"
    assert agent.text(session, "agent_thought_chunk") == "hm"


def test_keep_alives_are_passed_over(agent: AcpClient, chat: ChatServer) -> None:
    noise = b': PROCESSING\n\nevent: ping\ndata: : keepalive\n\ndata: {"type":"ping"}\n\n'
    chat.answers([noise, *text("ok"), noise])
    session = agent.new()
    agent.prompt(session, "hi")
    assert agent.text(session) == "ok"


def test_a_stream_without_done_is_whole_if_it_says_why_it_ended(
    agent: AcpClient, chat: ChatServer
) -> None:
    chat.answers([delta("stop", content="ok")])
    session = agent.new()
    assert agent.prompt(session, "hi")["stopReason"] == "end_turn"


def test_what_follows_done_is_neither_read_nor_waited_for(
    agent: AcpClient, chat: ChatServer
) -> None:
    gate = Gate()
    chat.answers([delta("stop", content="ok"), DONE, delta(content="more"), gate])
    session = agent.new()
    assert agent.prompt(session, "hi")["stopReason"] == "end_turn"
    chat.wait(lambda: chat.left == 1)
    assert agent.text(session) == "ok"


def test_a_connection_cut_behind_done_is_no_failure(agent: AcpClient, chat: ChatServer) -> None:
    chat.answers(Answer([delta("stop", content="ok"), DONE], cut=True))
    session = agent.new()
    assert agent.prompt(session, "hi")["stopReason"] == "end_turn"


def test_an_error_body_without_end_is_not_waited_for(agent: AcpClient, chat: ChatServer) -> None:
    chat.answers(Answer([b"<p>" + b"x" * 10_000, Gate()], "503 Service Unavailable"))
    params = {"sessionId": agent.new(), "prompt": [{"type": "text", "text": "a"}]}
    error = agent.refusal("session/prompt", params)
    assert error["data"]["details"].startswith("HTTP 503")
    assert len(error["data"]["details"]) < 5000
    chat.wait(lambda: chat.left == 1)


@pytest.mark.parametrize(
    "kind", ["Text/Event-Stream; charset=utf-8", "application/json", "", "x/y"]
)
def test_a_stream_by_any_other_name_is_read_as_one(
    agent: AcpClient, chat: ChatServer, kind: str
) -> None:
    session = agent.new()
    chat.answers(Answer(text("a", "b"), kind=kind))
    assert agent.prompt(session, "hi")["stopReason"] == "end_turn"
    assert agent.text(session) == "ab"


def test_an_answer_that_is_none_is_shown_with_what_to_look_at(
    agent: AcpClient, chat: ChatServer
) -> None:
    params = {"sessionId": agent.new(), "prompt": [{"type": "text", "text": "hi"}]}
    for body, shown in (
        (b"<html>Sign in</html>", "<html>Sign in"),
        (b"", "nothing"),
        (b"[]", "[]"),
    ):
        chat.answers(Answer([body] if body else [], kind="text/html"))
        words = agent.refusal("session/prompt", params)["data"]["details"]
        assert shown in words
        assert "OPENAI_BASE_URL" in words


def test_an_error_event_ends_the_turn_with_its_words(agent: AcpClient, chat: ChatServer) -> None:
    params = {"sessionId": agent.new(), "prompt": [{"type": "text", "text": "hi"}]}
    for data in (b'{"message":"overloaded"}', b'{"error":{"message":"overloaded"}}'):
        chat.answers([delta(content="so far"), b"event: error\ndata: " + data + b"\n\n"])
        words = agent.refusal("session/prompt", params)["data"]["details"]
        assert words.endswith(": overloaded")


@pytest.mark.parametrize(
    "spent", [[], "x", {"prompt_tokens": "12"}, {"prompt_tokens": -1}, {"prompt_tokens": 0.5}]
)
def test_a_count_of_tokens_that_makes_no_sense_fails_no_turn(
    agent: AcpClient, chat: ChatServer, spent: object
) -> None:
    session = agent.new()
    counted = event({"choices": [], "usage": spent})
    chat.answers([delta(content="ok"), delta("stop"), counted, DONE])
    assert agent.prompt(session, "hi") == {"stopReason": "end_turn"}
    assert agent.text(session) == "ok"
