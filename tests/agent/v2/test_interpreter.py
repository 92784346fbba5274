"""One session of a version 2 agent, message by message, as a session of version 1 hears of it."""

from typing import Any

import pytest

from bridge.agent.updates import Incoming
from bridge.agent.v2 import interpreter
from bridge.rpc.connection import Settle
from bridge.wire import codec
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Fault, Notification, Request
from tests.agent.v2.wire import ECHO, END, TEXT, Wire, chunk, state, whole


def test_a_turn_is_answered_behind_its_last_update() -> None:
    wire = Wire()
    wire.prompts()
    wire.says(ECHO, state("running"), chunk("m"))
    wire.answers({"messageId": "u", "_meta": {"r": 1, "k": 0}})
    wire.says(END)
    assert wire.heard() == [
        {"sessionUpdate": "user_message_chunk", "messageId": "u", "content": TEXT},
        state("running"),
        chunk("m"),
        END,
        ("end", {"stopReason": "end_turn", "usage": {"totalTokens": 1}, "_meta": {"r": 1, "k": 1}}),
    ]


def test_what_a_state_says_of_the_turn_is_no_metadata_of_an_update() -> None:
    heard: list[Incoming] = []
    wire = Wire()
    wire.inner.update = heard.append  # type: ignore[method-assign]
    wire.prompts()
    wire.says(ECHO, state("running"), END)
    assert heard[-1].params.update.kind == "state_update"
    assert heard[-1].metadata() is None


@pytest.mark.parametrize(
    ("end", "answer"),
    [
        ({}, {}),
        ({"stopReason": None, "usage": None, "_meta": None}, {}),
        ({"stopReason": 7, "usage": 7, "_meta": 7}, {}),
        ({"stopReason": "_vendor"}, {"stopReason": "_vendor"}),
        ({"stopReason": "max_tokens", "background": []}, {"stopReason": "max_tokens"}),
    ],
)
def test_a_stop_reason_is_kept_as_it_is(end: dict[str, Any], answer: dict[str, Any]) -> None:
    wire = Wire()
    wire.prompts()
    wire.says(ECHO, state("running"), state("idle", **end))
    assert wire.heard()[-1] == ("end", answer)


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (
            {"code": -32000, "message": "log in", "data": [1]},
            Fault(-32000, "log in", [1]),
        ),
        (
            {"code": True, "message": ""},
            Fault(None, "the agent's work failed, and it does not say why"),
        ),
        (None, Fault(None, "the agent's work failed, and it does not say why")),
    ],
)
def test_a_failure_is_version_1_s_error(error: Any, fault: Fault) -> None:
    wire = Wire()
    wire.prompts()
    wire.says(ECHO, state("running"), state("idle", stopReason="error", error=error))
    assert wire.heard()[-1] == ("end", fault)


def test_a_refusal_ends_the_turn_and_the_state_that_follows_ends_nothing() -> None:
    wire = Wire()
    wire.prompts()
    wire.answers(error=Fault(-32602, "no"))
    wire.says(state("idle", stopReason="error"))
    assert wire.heard() == [("end", Fault(-32602, "no")), state("idle", stopReason="error")]


def test_the_answer_that_comes_last_changes_nothing() -> None:
    wire = Wire()
    wire.prompts()
    wire.says(ECHO, state("running"), END)
    wire.heard()
    wire.answers(error=Fault(None, "late"))
    wire.prompts()
    wire.answers(7)
    assert wire.heard() == []


def test_the_connection_s_end_is_the_turn_s() -> None:
    wire = Wire()
    wire.prompts()
    wire.answers()
    wire.session.end("gone")
    wire.session.end("gone")
    assert wire.heard() == [("end", Fault(None, "gone"))]


def test_a_prompt_that_cannot_be_written_leaves_no_turn() -> None:
    wire = Wire()

    def send(_settle: Settle) -> None:
        raise codec.JSONError("deep")

    with pytest.raises(codec.JSONError):
        wire.session.prompt(send, wire.inner.settle)
    wire.says(state("running"), state("idle"))
    assert wire.heard() == ["begun", state("running"), state("idle"), ("end", {})]


def test_a_doubtful_end_stands_when_nothing_contradicts_it() -> None:
    wire = Wire()
    wire.prompts()
    wire.says(state("running"), chunk("m"), END)
    assert wire.heard()[-1] == END
    [(seconds, act)] = wire.timers
    assert seconds == interpreter.DOUBT
    act()
    assert wire.heard() == [
        ("end", {"stopReason": "end_turn", "usage": {"totalTokens": 1}, "_meta": {"k": 1}})
    ]
    act()
    assert wire.heard() == []


def test_a_doubtful_end_falls_with_what_follows() -> None:
    wire = Wire()
    wire.prompts()
    wire.says(state("running"), chunk("theirs"), END, ECHO)
    assert wire.heard()[-2] == "anew"
    wire.timers[0][1]()
    wire.says(state("running"), chunk("theirs"), chunk("ours"))
    assert wire.heard() == [state("running"), ("late", chunk("theirs")), chunk("ours")]
    wire.says(END)
    assert wire.heard()[-1][0] == "end"


def test_a_cancel_settles_a_doubt() -> None:
    wire = Wire()
    wire.prompts()
    wire.says(state("running"), END)
    wire.heard()
    wire.session.cancel()
    assert [one[0] for one in wire.heard()] == ["end"]


def test_the_agent_s_own_turn_begins_before_its_first_update() -> None:
    wire = Wire()
    wire.says(state("running"), chunk("m"), state("idle"))
    assert wire.heard() == ["begun", state("running"), chunk("m"), state("idle"), ("end", {})]


def test_before_the_session_is_opened_there_is_no_turn() -> None:
    wire = Wire(opened=False)
    wire.says(chunk("old"), state("running"))
    assert wire.heard() == [chunk("old"), state("running")]
    wire.session.opened()
    wire.says(chunk("old"), chunk("new"))
    assert wire.heard() == ["begun", ("late", chunk("old")), chunk("new")]


def test_what_an_earlier_turn_says_is_late_in_the_next_and_plain_between_them() -> None:
    wire = Wire()
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "x"}
    wire.says(state("running"), chunk("m"), call, state("idle"))
    wire.heard()
    wire.says(chunk("m"))
    assert wire.heard() == [chunk("m")]
    wire.prompts()
    wire.says(chunk("m"), call)
    assert wire.heard() == [("late", chunk("m")), ("late", call)]


@pytest.mark.parametrize("kind", ["agent_message", "agent_thought", "user_message"])
def test_a_whole_message_is_chunks_once(kind: str) -> None:
    wire = Wire()
    body = whole("m", kind, content=[TEXT, TEXT], _meta={"k": 1})
    first = chunk("m", f"{kind}_chunk")
    wire.says(body)
    assert wire.heard() == [first | {"_meta": {"k": 1}}, first]
    wire.says(body, whole("m", kind), whole("m", kind, content=None), first)
    assert wire.heard() == [body, whole("m", kind), whole("m", kind, content=None), first]


def test_kinds_of_one_id_are_different_messages() -> None:
    wire = Wire()
    wire.says(chunk("m", "agent_thought_chunk"), whole("m", content=[TEXT]))
    assert wire.heard() == [chunk("m", "agent_thought_chunk"), chunk("m")]


def test_outer_metadata_is_told_once() -> None:
    heard: list[Any] = []
    wire = Wire()
    wire.inner.update = lambda incoming: heard.append(incoming.metadata())  # type: ignore[method-assign]
    wire.says(whole("m", content=[TEXT, TEXT]), _meta={"outer": 1})
    assert heard == [{"outer": 1}, None]


def test_plans_and_options_are_version_1_s() -> None:
    wire = Wire()
    plan = {"type": "items", "planId": "p", "entries": [{"status": "cancelled"}]}
    wire.says({"sessionUpdate": "plan_update", "plan": plan})
    [update] = wire.heard()
    assert (update["sessionUpdate"], update["entries"]) == ("plan", [{"status": "completed"}])
    assert update["ORIGINAL"]["plan"] == plan
    other = {"sessionUpdate": "plan_update", "plan": {"type": "markdown", "content": "x"}}
    mode = {"configId": "how", "category": "mode", "currentValue": "a", "options": []}
    options = {"sessionUpdate": "config_option_update", "configOptions": [mode]}
    wire.says(other, options, options)
    assert [update["sessionUpdate"] for update in wire.heard()] == [
        "plan_update",
        "config_option_update",
        "current_mode_update",
        "config_option_update",
    ]


@pytest.mark.parametrize("kind", ["terminal_update", "terminal_output_chunk", "notice", "_x", "x"])
def test_every_other_kind_goes_on_as_it_is(kind: str) -> None:
    wire = Wire()
    body = {"sessionUpdate": kind, "terminalId": "t", "capabilities": {"cancel": {}}, "title": None}
    wire.says(body)
    assert wire.heard() == [body]
    assert wire.session.tools.cancellable("terminal", "t") == (kind == "terminal_update")


def test_a_child_is_adopted_when_it_is_announced() -> None:
    wire = Wire()
    body = {"sessionUpdate": "subagent_update", "sessionId": "c"}
    wire.says(body, {"sessionUpdate": "subagent_update", "sessionId": 7})
    assert wire.children == ["c"]
    assert wire.heard()[0] == body


def test_requests_and_notifications_go_on() -> None:
    wire = Wire()
    params = Raw(b'{"sessionId":"s","title":"May it?","options":[]}')
    wire.session.request(Request(b"1", "session/request_permission", params, b""), "client")
    wire.session.request(Request(b"2", "elicitation/create", params, b""), "client")
    wire.session.notification(Notification("elicitation/complete", params, b""))
    asked, elicited, completed = wire.heard()
    assert asked[1]["toolCall"] == {"toolCallId": "", "title": "May it?"}
    assert elicited == ("elicitation/create", codec.decode(params), "client")
    assert completed == "elicitation/complete"


def test_ids_of_the_past_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "KEPT_IDS", 10)
    wire = Wire()
    for number in range(50):
        wire.says(state("running"), chunk(str(number)), state("idle"))
    assert len(wire.session._seen) <= 11
    assert len(wire.session._filled["agent_message"]) <= 11
