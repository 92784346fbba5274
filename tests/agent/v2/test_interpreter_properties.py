"""Whatever a version 2 agent says: nothing of it is lost, and nothing is too strange."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bridge.agent.v2 import interpreter
from bridge.wire import codec
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Request
from tests.agent.v2.wire import TEXT, Wire, chunk, whole

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
