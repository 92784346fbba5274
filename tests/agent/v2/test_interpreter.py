"""One session of a version 2 agent, message by message, as a session of version 1 hears of it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agent import updates
from bridge.agent.updates import Incoming
from bridge.agent.v2 import interpreter
from bridge.agent.v2.interpreter import Interpreter
from bridge.rpc.connection import Settle
from bridge.wire import codec
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Fault, Notification, Request, Response

TEXT = {"type": "text", "text": "x"}


class Inner:
    """A session that notes what it hears."""

    name = "n"

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def update(self, incoming: Incoming) -> None:
        self.heard.append(told(incoming))

    def late(self, incoming: Incoming) -> None:
        self.heard.append(("late", told(incoming)))

    def begun(self) -> Settle:
        self.heard.append("begun")
        return self.settle

    def anew(self) -> None:
        self.heard.append("anew")

    def child(self, session_id: str, incoming: Incoming) -> None:
        self.heard.append((session_id, told(incoming)))

    def settle(self, response: Response) -> None:
        error = response.error
        self.heard.append(("end", codec.decode(response.result) if error is None else error))

    def request(self, request: Request, client: Any) -> None:
        self.heard.append((request.method, codec.decode(request.params), client))

    def notification(self, notification: Notification) -> None:
        self.heard.append(notification.method)


def told(incoming: Incoming) -> dict[str, Any]:
    update = codec.decode(incoming.raw())
    original = incoming.original()
    return update if original is None else update | {"ORIGINAL": codec.decode(original)}


class Wire:
    """An opened session; what is said comes in as from the agent, timers are let pass by hand."""

    def __init__(self, *, opened: bool = True) -> None:
        self.inner = Inner()
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.children: list[str] = []
        self.session = Interpreter(
            self.inner, lambda *timer: self.timers.append(timer), self.children.append
        )
        self.answered: Settle | None = None
        if opened:
            self.session.opened()

    def says(self, *bodies: dict[str, Any], **outer: Any) -> None:
        for body in bodies:
            params = {"sessionId": "s", "update": body, **outer}
            line = codec.encode({"jsonrpc": "2.0", "method": "session/update", "params": params})
            notification = Notification(updates.METHOD, Raw(codec.encode(params)), line)
            read = updates.decode(line) or updates.read(notification)
            assert read is not None
            self.session.update(read)

    def prompts(self) -> None:
        def send(settle: Settle) -> None:
            self.answered = settle

        self.session.prompt(send, self.inner.settle)

    def answers(self, result: Any = None, error: Fault | None = None) -> None:
        assert self.answered is not None
        found = {"messageId": "u"} if result is None else result
        self.answered(Response(b"1", Raw(codec.encode(found)), error, b"line"))

    def heard(self) -> list[Any]:
        found, self.inner.heard = self.inner.heard, []
        return found


def state(name: str, **more: Any) -> dict[str, Any]:
    return {"sessionUpdate": "state_update", "state": name, **more}


def chunk(ident: str, kind: str = "agent_message_chunk", **more: Any) -> dict[str, Any]:
    return {"sessionUpdate": kind, "messageId": ident, "content": TEXT, **more}


def whole(ident: str, kind: str = "agent_message", **more: Any) -> dict[str, Any]:
    return {"sessionUpdate": kind, "messageId": ident, **more}


ECHO = whole("u", "user_message", content=[TEXT])
END = state("idle", stopReason="end_turn", usage={"totalTokens": 1}, _meta={"k": 1})


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


_NAMES = """state stopReason error usage _meta messageId content toolCallId status kind title
capabilities cancel plan type entries planId configOptions configId category options groupId value
currentValue terminalId sessionId exitStatus changes patch text subject toolCall"""
FIELD_NAMES = st.sampled_from(_NAMES.split())
OMITTED = object()
CONTENTS = st.sampled_from([OMITTED, None, [], [TEXT], [TEXT, TEXT]])
BODIES = st.builds(
    lambda ident, content, kind: whole(
        ident, kind, **({} if content is OMITTED else {"content": content})
    ),
    st.sampled_from("ab"),
    CONTENTS,
    st.sampled_from(["agent_message", "agent_thought"]),
) | st.builds(chunk, st.sampled_from("ab"))


def messages(bodies: list[dict[str, Any]]) -> dict[tuple[str, str], list[Any]]:
    """What the messages hold, by version 2's rules."""
    found: dict[tuple[str, str], list[Any]] = {}
    for body in bodies:
        key = body["sessionUpdate"].removesuffix("_chunk"), body["messageId"]
        if body["sessionUpdate"].endswith("_chunk"):
            found[key] = [*found.get(key, []), body["content"]]
        elif "content" in body:
            found[key] = body["content"] or []
    return {key: content for key, content in found.items() if content}


@given(st.lists(BODIES, max_size=8))
def test_nothing_of_a_message_is_lost_or_changed(bodies: list[dict[str, Any]]) -> None:
    wire = Wire()
    wire.says(*bodies)
    heard = wire.heard()
    assert messages(heard) == messages(bodies)
    kept = [json.dumps(body) for body in bodies if json.dumps(body) in map(json.dumps, heard)]
    cleared = [b for b in bodies if b.get("content", OMITTED) in (None, [])]
    assert all(json.dumps(body) in kept for body in cleared)


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=2)
    | st.sampled_from(["idle", "tool_call"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(FIELD_NAMES, inner, max_size=3),
    max_leaves=6,
)
STRANGE = st.builds(
    lambda kind, fields: {**fields, "sessionUpdate": kind},
    st.sampled_from([*interpreter._CHUNK_OF, *interpreter._CHUNKS, "state_update", "notice"])
    | st.sampled_from(["tool_call_update", "tool_call_content_chunk", "terminal_update"])
    | st.sampled_from(["plan_update", "config_option_update", "subagent_update"]),
    st.dictionaries(FIELD_NAMES, ANY, max_size=6),
)


@given(st.lists(STRANGE, max_size=6))
def test_nothing_that_an_agent_says_is_too_strange(bodies: list[dict[str, Any]]) -> None:
    wire = Wire()
    wire.prompts()
    wire.says(*bodies)
    wire.session.end("gone")
    told = [one for one in wire.heard() if isinstance(one, dict) or one[0] == "late"]
    assert len(told) >= len(bodies)


@given(st.dictionaries(FIELD_NAMES, ANY, max_size=6))
def test_no_question_is_too_strange(params: dict[str, Any]) -> None:
    wire = Wire()
    raw = Raw(codec.encode(params))
    wire.session.request(Request(b"1", "session/request_permission", raw, b""), "client")
    [(_, asked, _)] = wire.heard()
    assert asked["original"] == params
    assert isinstance(asked["toolCall"], dict)
