"""Turns as a client sees them: streaming, tools, steering, cancelling, every way to end."""

import pytest

from tests.loop_agent.acp_client import AcpClient, Message
from tests.loop_agent.chat_server import (
    DONE,
    Answer,
    ChatServer,
    Gate,
    Step,
    call,
    delta,
    event,
    text,
    usage,
)
from tests.loop_agent.conftest import Start


def roles(chat: ChatServer, request: int = -1) -> list[str]:
    return [message["role"] for message in chat.requests[request]["messages"]]


def steer(agent: AcpClient, session: str, words: str, **more: object) -> Message:
    prompt = [{"type": "text", "text": words}]
    meta = {"steering": {"idleBehavior": "promptRequired"}}
    params = {"sessionId": session, "prompt": prompt, "_meta": meta}
    return agent.call("_session/steering", params | more)


def cancel(agent: AcpClient, session: str) -> None:
    agent.notify("session/cancel", {"sessionId": session})


# A reply


def test_text_is_streamed_as_one_message(agent: AcpClient, chat: ChatServer) -> None:
    session, gate = agent.new(), Gate()
    chat.answers(text("Hel", gate, "lo"))
    ident = agent.start(session, "hi")
    agent.wait(lambda: agent.text(session) == "Hel")
    gate.open()
    result = agent.result(ident)
    chunks = agent.updates(session, "agent_message_chunk")
    assert [chunk["content"]["text"] for chunk in chunks] == ["Hel", "lo"]
    assert len({chunk["messageId"] for chunk in chunks}) == 1
    assert result["stopReason"] == "end_turn"
    request = chat.requests[0]
    assert request["model"] == "scripted"
    assert request["stream"] is True
    assert request["messages"] == [{"role": "user", "content": "hi"}]


def test_the_next_message_has_another_id(agent: AcpClient, chat: ChatServer) -> None:
    session = agent.new()
    chat.answers(text("one"), text("two"))
    agent.prompt(session, "a")
    agent.prompt(session, "b")
    ids = [chunk["messageId"] for chunk in agent.updates(session, "agent_message_chunk")]
    assert len(set(ids)) == 2
    assert roles(chat) == ["user", "assistant", "user"]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_are_shown_and_go_back_beside_tool_calls_only(
    agent: AcpClient, chat: ChatServer, field: str
) -> None:
    session = agent.new()
    think = delta(**{field: "hmm"})
    chat.answers([think, *call(("bash", '{"command":"echo x"}'))], [think, *text("ok")], text("b"))
    agent.prompt(session, "a")
    agent.prompt(session, "b")
    thoughts = agent.updates(session, "agent_thought_chunk")
    assert [chunk["content"]["text"] for chunk in thoughts] == ["hmm", "hmm"]
    history = chat.requests[2]["messages"]
    assert history[1][field] == "hmm"
    assert set(history[3]) == {"role", "content"}


def test_usage_adds_up_over_the_session(agent: AcpClient, chat: ChatServer) -> None:
    session = agent.new()
    details = usage(
        completion_tokens_details={"reasoning_tokens": 2},
        prompt_tokens_details={"cached_tokens": 5},
    )
    chat.answers(text("one"), [delta("stop", content="two"), details, DONE])
    first = agent.prompt(session, "a")["usage"]
    assert first == {"totalTokens": 14, "inputTokens": 11, "outputTokens": 3}
    assert agent.prompt(session, "b")["usage"] == {
        "totalTokens": 28,
        "inputTokens": 22,
        "outputTokens": 6,
        "thoughtTokens": 2,
        "cachedReadTokens": 5,
    }
    updates = agent.updates(session, "usage_update")
    assert [(update["used"], update["size"]) for update in updates] == [(14, 128_000)] * 2


def test_no_usage_is_made_up_where_the_provider_gives_none(
    agent: AcpClient, chat: ChatServer
) -> None:
    session = agent.new()
    chat.answers([delta("stop", content="x"), DONE])
    assert agent.prompt(session, "a") == {"stopReason": "end_turn"}
    assert agent.updates(session, "usage_update") == []


def test_the_first_prompt_gives_the_session_its_title(agent: AcpClient, chat: ChatServer) -> None:
    session = agent.new()
    chat.answers(text("one"), text("two"))
    agent.prompt(session, "first line\nsecond")
    agent.prompt(session, "another")
    titles = [update["title"] for update in agent.updates(session, "session_info_update")]
    assert titles == ["first line"]


def test_images_and_resources_reach_the_model_in_place(agent: AcpClient, chat: ChatServer) -> None:
    session = agent.new()
    chat.answers(text("a dot"))
    blocks = [
        {"type": "text", "text": "what is"},
        {"type": "image", "mimeType": "image/png", "data": "aGk="},
        {"type": "resource", "resource": {"uri": "file:///x", "text": "inside"}},
        {"type": "resource_link", "name": "n", "uri": "file:///y"},
    ]
    agent.call("session/prompt", {"sessionId": session, "prompt": blocks})
    assert chat.requests[0]["messages"][0]["content"] == [
        {"type": "text", "text": "what is"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "text", "text": '<resource uri="file:///x">\ninside\n</resource>'},
        {"type": "text", "text": "[n](file:///y)"},
    ]


def test_a_prompt_that_cannot_be_sent_is_refused_and_leaves_no_turn(
    agent: AcpClient, chat: ChatServer
) -> None:
    session = agent.new()
    audio = {"type": "audio", "mimeType": "audio/wav", "data": "aGk="}
    error = agent.refusal("session/prompt", {"sessionId": session, "prompt": [audio]})
    assert error["code"] == -32602
    assert "audio" in error["message"]
    assert agent.refusal("session/prompt", {"sessionId": session, "prompt": []})["code"] == -32602
    chat.answers(text("fine"))
    assert agent.prompt(session, "go")["stopReason"] == "end_turn"


# How a turn ends


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (text("cut of", finish="length"), "max_tokens"),
        (text("", finish="content_filter"), "refusal"),
        ([delta(refusal="I will not"), delta("stop"), DONE], "refusal"),
        (text(""), "end_turn"),
        (text("\n\n"), "end_turn"),
        ([delta(content=None), delta("stop", content=None), DONE], "end_turn"),
    ],
)
def test_finish_reasons_become_stop_reasons(
    agent: AcpClient, chat: ChatServer, answer: list[Step], reason: str
) -> None:
    session = agent.new()
    chat.answers(answer, text("next"))
    assert agent.prompt(session, "a")["stopReason"] == reason
    assert agent.prompt(session, "b")["stopReason"] == "end_turn"
    assert all(isinstance(m["content"], str) for m in chat.requests[1]["messages"])


def test_calls_cut_off_by_the_token_limit_are_not_run(agent: AcpClient, chat: ChatServer) -> None:
    session = agent.new()
    steps = call(("bash", '{"command":"touch /tmp/never'))
    steps[-3] = delta("length")
    chat.answers(steps, text("next"))
    assert agent.prompt(session, "a")["stopReason"] == "max_tokens"
    assert agent.updates(session, "tool_call") == []
    agent.prompt(session, "b")
    assert "tool_calls" not in chat.requests[1]["messages"][1]


def test_a_turn_has_a_limit_of_model_requests(start: Start, chat: ChatServer) -> None:
    agent = start("--tools", "bash", "--permission", "auto", "--max-model-requests", "2")
    session = agent.new()
    again = call(("bash", '{"command":"echo again"}'))
    chat.answers(again, again, text("later"))
    assert agent.prompt(session, "a")["stopReason"] == "max_turn_requests"
    assert agent.prompt(session, "b")["stopReason"] == "end_turn"
    assert roles(chat) == ["user", "assistant", "tool", "assistant", "tool", "user"]


# Failures


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            Answer([b'{"error":{"message":"slow down","code":1}}'], "429 Too Many Requests"),
            ["429", "slow down"],
        ),
        (Answer([b'{"detail":"no such model"}'], "404 Not Found"), ["404", "no such model"]),
        (Answer([b"<h1>Bad Gateway</h1>"], "502 Bad Gateway"), ["502", "<h1>Bad Gateway</h1>"]),
        (Answer([], "500 Internal Server Error"), ["500", "(no body)"]),
        (Answer([delta(content="par")], cut=True), ["127.0.0.1", "RemoteProtocolError"]),
        (Answer([delta(content="par")]), ["before the answer was complete"]),
        ([DONE], ["neither text nor tool calls"]),
        ([event({"error": {"message": "overloaded"}})], ["overloaded"]),
        ([event({"choices": [{"delta": {"content": 5}}]})], ["$.choices[0].delta.content"]),
        ([b"data: {broken\n\n"], ["127.0.0.1"]),
        ([delta("error", content="x"), DONE], ["finish_reason"]),
        (Answer([b"[]"], kind="application/json"), ["127.0.0.1"]),
    ],
)
def test_a_failed_model_request_is_an_error_that_says_how(
    agent: AcpClient, chat: ChatServer, answer: Answer | list[Step], words: list[str]
) -> None:
    session = agent.new()
    chat.answers(answer, text("well"))
    params = {"sessionId": session, "prompt": [{"type": "text", "text": "a"}]}
    error = agent.refusal("session/prompt", params)
    assert error["code"] == -32603
    for word in words:
        assert word in error["data"]["details"]
    assert agent.prompt(session, "b")["stopReason"] == "end_turn"
    # What the client has seen of the failed answer is in the history.
    partial = agent.text(session).removesuffix("well")
    history = [m["content"] for m in chat.requests[1]["messages"]]
    assert history == ["a", *([partial] if partial else []), "b"]


def test_a_model_that_is_not_there_is_an_error(start: Start) -> None:
    agent = start(url="http://127.0.0.1:1/v1")
    params = {"sessionId": agent.new(), "prompt": [{"type": "text", "text": "a"}]}
    error = agent.refusal("session/prompt", params)
    assert "ConnectError" in error["data"]["details"]
    assert "127.0.0.1:1" in error["data"]["details"]


# Cancelling


def test_cancel_in_mid_stream(agent: AcpClient, chat: ChatServer) -> None:
    session, gate = agent.new(), Gate()
    chat.answers(text("part", gate, "never"), text("on"))
    ident = agent.start(session, "a")
    agent.wait(lambda: agent.text(session) == "part")
    cancel(agent, session)
    cancel(agent, session)
    assert agent.result(ident)["stopReason"] == "cancelled"
    chat.wait(lambda: chat.left == 1)
    seen = len(agent.messages)
    assert agent.prompt(session, "b")["stopReason"] == "end_turn"
    assert chat.requests[1]["messages"][1] == {"role": "assistant", "content": "part"}
    assert agent.text(session) == "parton"
    # Nothing came of the cancelled turn after its response.
    kinds = [m["params"]["update"]["sessionUpdate"] for m in agent.messages[seen:-1]]
    assert kinds == ["agent_message_chunk", "usage_update"]


def test_cancel_before_the_turn_has_done_anything(agent: AcpClient, chat: ChatServer) -> None:
    session = agent.new()
    ident = agent.start(session, "a")
    cancel(agent, session)
    assert agent.result(ident)["stopReason"] == "cancelled"
    chat.answers(text("on"))
    assert agent.prompt(session, "b")["stopReason"] == "end_turn"


def test_cancel_while_nothing_runs_does_not_touch_the_next_turn(
    agent: AcpClient, chat: ChatServer
) -> None:
    session = agent.new()
    cancel(agent, session)
    chat.answers(text("fine"))
    assert agent.prompt(session, "a")["stopReason"] == "end_turn"


def test_close_cancels_the_turn(agent: AcpClient, chat: ChatServer) -> None:
    session, gate = agent.new(), Gate()
    chat.answers(text("part", gate))
    ident = agent.start(session, "a")
    agent.wait(lambda: agent.text(session) == "part")
    assert agent.call("session/close", {"sessionId": session}) == {}
    assert agent.result(ident)["stopReason"] == "cancelled"
    params = {"sessionId": session, "prompt": [{"type": "text", "text": "a"}]}
    assert agent.refusal("session/prompt", params)["code"] == -32002


# Steering


def test_steering_goes_in_where_the_model_is_asked_next(agent: AcpClient, chat: ChatServer) -> None:
    session, gate = agent.new(), Gate()
    calls = call(("bash", '{"command":"echo tool"}'))
    chat.answers([gate, *calls], text("ok"))
    ident = agent.start(session, "a")
    gate.wait_reached()
    assert steer(agent, session, "also this", messageId="m1") == {"outcome": "injected"}
    gate.open()
    assert agent.result(ident)["stopReason"] == "end_turn"
    assert roles(chat) == ["user", "assistant", "tool", "user"]
    assert chat.requests[1]["messages"][-1]["content"] == "also this"


def test_steering_during_the_last_answer_prolongs_the_turn(
    agent: AcpClient, chat: ChatServer
) -> None:
    session, gate = agent.new(), Gate()
    chat.answers(text("done", gate), text("really done"))
    ident = agent.start(session, "a")
    gate.wait_reached()
    steer(agent, session, "one more")
    steer(agent, session, "and another")
    gate.open()
    assert agent.result(ident)["stopReason"] == "end_turn"
    contents = [message["content"] for message in chat.requests[1]["messages"]]
    assert contents == ["a", "done", "one more", "and another"]


def test_steering_right_behind_a_prompt_gets_into_it(agent: AcpClient, chat: ChatServer) -> None:
    session = agent.new()
    chat.answers(text("ok"))
    ours, theirs = (
        {"sessionId": session, "prompt": [{"type": "text", "text": text}]} for text in "ab"
    )
    first, second = agent.requests(("session/prompt", ours), ("_session/steering", theirs))
    assert agent.result(second) == {"outcome": "injected"}
    agent.result(first)
    assert [message["content"] for message in chat.requests[0]["messages"]] == ["a", "b"]


def test_steering_an_idle_session_asks_for_a_prompt(agent: AcpClient, chat: ChatServer) -> None:
    session = agent.new()
    answer = steer(agent, session, "x")
    assert answer == {"outcome": "promptRequired", "reason": "noRunningTurn"}
    chat.answers(text("ok"))
    agent.prompt(session, "a")
    assert steer(agent, session, "x") == answer
    assert [message["content"] for message in chat.requests[0]["messages"]] == ["a"]


def test_steering_of_a_cancelled_turn_stays_in_the_history(
    agent: AcpClient, chat: ChatServer
) -> None:
    session, gate = agent.new(), Gate()
    chat.answers(text(gate), text("ok"))
    ident = agent.start(session, "a")
    gate.wait_reached()
    steer(agent, session, "accepted")
    cancel(agent, session)
    assert agent.result(ident)["stopReason"] == "cancelled"
    agent.prompt(session, "b")
    assert [message["content"] for message in chat.requests[1]["messages"]] == [
        "a",
        "accepted",
        "b",
    ]


def test_steering_that_makes_no_sense_is_refused(agent: AcpClient) -> None:
    session = agent.new()
    prompt = [{"type": "text", "text": "x"}]
    unknown = {"sessionId": "sess_none", "prompt": prompt}
    error = agent.refusal("_session/steering", unknown)
    assert (error["code"], error["data"]) == (-32002, {"sessionId": "sess_none"})
    meta = {"steering": {"idleBehavior": "startTurn"}}
    params = {"sessionId": session, "prompt": prompt, "_meta": meta}
    assert agent.refusal("_session/steering", params)["code"] == -32602


# A client that reads slowly


def test_a_flood_arrives_whole_and_in_order(agent: AcpClient, chat: ChatServer) -> None:
    session = agent.new()
    pieces = [f"{number:06d}," for number in range(3000)]
    steps: list[Step] = [b"".join(delta(content=piece) for piece in pieces)]
    chat.answers([*steps, *text()])
    assert agent.prompt(session, "a")["stopReason"] == "end_turn"
    assert agent.text(session) == "".join(pieces)
