"""Tool calls by patches, told as version 1 tells of them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agent.v2 import patches, tools
from bridge.agent.v2.tools import Told, Tools
from bridge.wire import codec

ITEM = {"type": "content", "content": {"type": "text", "text": "x"}}
FIRST = {"pending", "in_progress", "completed", "failed"}


def members(value: dict[str, Any]) -> patches.Members:
    return patches.members(json.dumps(value).encode())


def plain(told: Told | None) -> dict[str, Any] | None:
    return None if told is None else codec.plain(told.update)


def change(ident: str = "c", **fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call_update", "toolCallId": ident, **fields}


def told(made: Tools, ident: str = "c", **fields: Any) -> Told | None:
    return made.update(ident, members(change(ident, **fields)))


def test_the_first_update_begins_a_call() -> None:
    made = Tools()
    begun = told(made, name="sh", rawInput={"a": 1}, vendor=[1], status=None)
    assert plain(begun) == {
        "sessionUpdate": "tool_call",
        "toolCallId": "c",
        "title": "sh",
        "name": "sh",
        "rawInput": {"a": 1},
        "vendor": [1],
    }
    assert begun is not None
    assert not begun.lost
    assert told(made, status="in_progress", title="run") is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"status": "cancelled"}, {"status": "failed"}),
        ({"status": "paused"}, {"status": "in_progress"}),
        ({"status": "_vendor"}, {"status": "in_progress"}),
        ({"status": None}, {"status": "pending"}),
        ({"kind": "_vendor"}, {"kind": "other"}),
        ({"kind": None}, {"kind": "other"}),
        ({"title": None}, {"title": ""}),
        ({"content": None}, {"content": []}),
        ({"locations": None}, {"locations": []}),
    ],
)
def test_what_version_1_has_no_word_for(fields: dict[str, Any], words: dict[str, Any]) -> None:
    made = Tools()
    told(made)
    found = told(made, **fields)
    assert plain(found) == change(**words)
    assert found is not None
    assert found.lost


def test_a_diff_is_told_by_its_patch() -> None:
    made = Tools()
    told(made)
    changes = [
        {"operation": "move", "oldPath": "/a", "path": "/b"},
        {"operation": "add", "path": "/c"},
    ]
    diff = {"type": "diff", "changes": changes}
    patched = diff | {"patch": {"format": "git_patch", "text": "--- a"}}
    found = plain(told(made, content=[patched, diff, ITEM]))
    assert found is not None
    assert [item["content"]["text"] for item in found["content"]] == [
        "--- a",
        "move /a /b\nadd /c",
        "x",
    ]


def test_what_was_streamed_comes_with_the_end() -> None:
    made = Tools()
    told(made, content=[ITEM])
    for _ in range(3):
        made.chunk("c", patches.raw(ITEM))
    assert told(made, status="in_progress") is None
    assert plain(told(made, status="completed")) == change(status="completed", content=[ITEM] * 4)
    assert told(made, rawOutput=1) is None


def test_content_replaces_what_was_streamed() -> None:
    made = Tools()
    told(made)
    made.chunk("c", patches.raw(ITEM))
    assert told(made, content=[]) is None
    assert told(made, status="completed") is None


def test_a_call_that_is_streamed_before_it_is_told_of() -> None:
    made = Tools()
    made.chunk("c", patches.raw(ITEM))
    made.chunk("c", None)
    begun = plain(told(made, status="failed"))
    assert begun is not None
    assert (begun["sessionUpdate"], begun["content"]) == ("tool_call", [ITEM])


def test_what_is_gathered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "STREAMED_BYTES", 3 * len(patches.raw(ITEM)))
    monkeypatch.setattr(tools, "KEPT_CALLS", 20)
    made = Tools()
    for number in range(100):
        told(made, str(number), rawInput="x")
        for _ in range(5):
            made.chunk(str(number), patches.raw(ITEM))
        over = plain(told(made, str(number), status="completed"))
        assert over is not None
        assert len(over["content"]) == 3
    assert len(made._calls) <= 20


def test_a_question_has_what_is_known_of_the_call() -> None:
    made = Tools()
    told(made, title="run", rawInput={"a": 1}, _meta={"x": 1})
    patch = {"toolCallId": "c", "status": "paused", "_meta": {"y": 2}, "content": [ITEM]}
    params = {
        "sessionId": "s",
        "title": "May it?",
        "subject": {"type": "tool_call", "toolCall": patch},
    }
    asked = codec.plain(made.question(members(params | {"options": []})))
    assert asked == {
        "sessionId": "s",
        "options": [],
        "original": params | {"options": []},
        "toolCall": {
            "toolCallId": "c",
            "title": "run",
            "rawInput": {"a": 1},
            "_meta": {"x": 1, "y": 2},
            "status": "in_progress",
            "content": [ITEM],
        },
    }
    assert told(made, kind="read") is None


def test_a_call_first_heard_of_in_a_question_is_begun_by_its_first_update() -> None:
    made = Tools()
    subject = {
        "type": "tool_call",
        "toolCall": {"toolCallId": "c", "title": "run", "content": [ITEM]},
    }
    made.question(members({"title": "May it?", "subject": subject}))
    begun = plain(told(made, status="in_progress"))
    assert begun == {
        "sessionUpdate": "tool_call",
        "toolCallId": "c",
        "title": "run",
        "status": "in_progress",
        "content": [ITEM],
    }


def test_what_can_be_cancelled_by_itself() -> None:
    made = Tools()
    can: dict[str, Any] = {"capabilities": {"cancel": {}}}
    told(made, **can)
    assert made.cancellable("tool_call", "c")
    told(made, title="x")
    assert made.cancellable("tool_call", "c")
    told(made, capabilities=None)
    assert not made.cancellable("tool_call", "c")
    told(made, **can)
    told(made, status="completed")
    assert not made.cancellable("tool_call", "c")
    made.terminal("t", members(can))
    assert made.cancellable("terminal", "t")
    assert not made.cancellable("tool_call", "t")
    made.terminal("t", members({"exitStatus": {}}))
    assert not made.cancellable("terminal", "t")


STATES = st.sampled_from([*sorted(FIRST), "cancelled", "paused", "_x"])
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "title": st.none() | st.text(max_size=3),
        "status": st.none() | STATES,
        "kind": st.none() | st.sampled_from(["read", "other", "_x"]),
        "content": st.none() | st.just([]) | st.just([ITEM]),
        "rawInput": st.none() | st.integers(),
        "_meta": st.none() | st.dictionaries(st.sampled_from("ab"), st.integers()),
        "vendor": st.none() | st.booleans(),
    },
)


def folded(updates: list[dict[str, Any]]) -> dict[str, Any]:
    """What a host of version 1 makes of them: null and absence leave a field as it is."""
    state = {"title": "", "status": "pending", "kind": "other", "content": []}
    for update in updates:
        state |= {name: value for name, value in update.items() if value is not None}
    return {name: state[name] for name in ("title", "status", "kind", "content")}


def patched(changes: list[dict[str, Any]]) -> dict[str, Any]:
    """What a client of version 2 makes of the originals, in version 1's words."""
    state = {"title": "", "status": "pending", "kind": "other", "content": []}
    start = dict(state)
    for one in changes:
        for name in state.keys() & one.keys():
            state[name] = start[name] if one[name] is None else one[name]
    status, kind = state["status"], state["kind"]
    words = {"cancelled": "failed"}.get(status, status if status in FIRST else "in_progress")
    return state | {"status": words, "kind": kind if kind in ("read", "other") else "other"}


@given(st.lists(FIELDS, min_size=1, max_size=6))
def test_both_versions_come_to_the_same_call(changes: list[dict[str, Any]]) -> None:
    made, updates = Tools(), []
    for fields in changes:
        found = told(made, **fields)
        updates.append(change(**fields) if found is None else codec.plain(found.update))
    assert [u["sessionUpdate"] for u in updates][:1] == ["tool_call"]
    assert {u["sessionUpdate"] for u in updates[1:]} <= {"tool_call_update"}
    assert all(u.get("status") in FIRST | {None} for u in updates)
    assert folded(updates) == patched(changes)
