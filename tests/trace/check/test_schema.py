"""The official schemas as judges: what is right, wrong, unstable, or to be read past."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bridge.trace import view
from bridge.trace.check import schema
from bridge.trace.check.shape import decisive_names, shape_of
from protocol_schemas import export
from tests.peers.node_agents import NODE

OFFICIAL = export.FOLDER.with_name("official") / "acp"
PUBLISHED = NODE / "@agentclientprotocol/sdk/schema"
TEXT = {"type": "text", "text": "x"}


def update(**fields: Any) -> dict[str, Any]:
    return {"sessionId": "s", "update": fields}


def judged(params: Any, version: int = 1) -> schema.Verdict:
    verdict = schema.judge(version, "session/update", "client", "Notification", params)
    assert verdict is not None
    return verdict


@pytest.mark.peers
@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("name", ["schema.json", "schema.unstable.json"])
def test_they_are_the_bytes_that_were_published(version: str, name: str) -> None:
    ours, published = OFFICIAL / version / name, PUBLISHED / version / name
    assert ours.read_bytes() == published.read_bytes()


def test_a_right_message_has_no_fault() -> None:
    verdict = judged(update(sessionUpdate="agent_message_chunk", content=TEXT))
    assert verdict == schema.Verdict([], False, [])


def test_a_fault_is_named_with_its_place() -> None:
    [fault] = judged(update(sessionUpdate="agent_message_chunk", content={"type": "text"})).faults
    assert fault.path == "update.content"
    assert "'text' is a required property" in fault.words


def test_an_unknown_kind_is_told_with_the_known_ones() -> None:
    [fault] = judged(update(sessionUpdate="mood_update")).faults
    assert fault.path == "update"
    assert "'mood_update' is none of" in fault.words
    assert "'agent_message_chunk'" in fault.words


def test_version_2_keeps_what_it_does_not_know() -> None:
    assert judged(update(sessionUpdate="_mood_update", mood=1), version=2).faults == []


def test_what_receivers_read_past_is_no_fault() -> None:
    verdict = judged(update(sessionUpdate="tool_call", toolCallId="t", title="T", status="odd"))
    assert verdict.faults == []
    assert [fault.path for fault in verdict.read_past] == ["update.status"]


def test_bad_items_that_receivers_skip_are_no_fault() -> None:
    locations = [{"path": "/x"}, {"path": 5}]
    verdict = judged(
        update(sessionUpdate="tool_call", toolCallId="t", title="T", locations=locations)
    )
    assert verdict.faults == []
    assert [fault.path for fault in verdict.read_past] == ["update.locations[1].path"]


def test_a_proposal_is_unstable() -> None:
    params = {"sessionId": "s", "cwd": "/", "mcpServers": []}
    verdict = schema.judge(1, "session/fork", "agent", "Request", params)
    assert verdict is not None
    assert (verdict.faults, verdict.unstable) == ([], True)


def test_a_stable_message_with_a_proposed_variant_is_unstable() -> None:
    plan = {"type": "items", "planId": "p", "entries": []}
    verdict = judged(update(sessionUpdate="plan_update", plan=plan))
    assert (verdict.faults, verdict.unstable) == ([], True)


def test_a_method_of_the_other_side_has_no_verdict() -> None:
    assert schema.judge(1, "session/prompt", "client", "Request", {}) is None
    assert schema.judge(1, "session/dance", "agent", "Request", {}) is None


@pytest.mark.parametrize("version", schema.VERSIONS)
def test_every_definition_with_a_method_can_judge(version: int) -> None:
    definitions = schema._schema(version, "schema.unstable").definitions
    assert len(definitions) > 40
    for method, side, part in definitions:
        verdict = schema.judge(version, method, side, part, 5)
        assert verdict is not None
        # What a successor answers may be anything.
        assert verdict.faults or method == "proxy/successor", (method, side, part)


def strictly_valid(version: int, definition: str, value: Any) -> bool:
    document = json.loads((OFFICIAL / f"v{version}/schema.unstable.json").read_text())
    root = {"$ref": f"#/$defs/{definition}", "$defs": document["$defs"]}
    return jsonschema.Draft202012Validator(root).is_valid(value)


@pytest.mark.parametrize("name", ["claude.acp.ndjson", "pi.acp.ndjson", "gemini.acp.ndjson"])
def test_what_a_strict_validator_accepts_is_never_at_fault(name: str) -> None:
    path = Path(__file__).with_name("transcripts") / name
    definitions = schema._schema(1, "schema.unstable").definitions
    compared: set[object] = set()
    for entry in view.entries(str(path), "is:request or is:notification"):
        side = "agent" if entry.event.dir == "out" else "client"
        part: schema.Part = "Request" if entry.role == "request" else "Notification"
        definition = definitions.get((entry.method, side, part))
        if definition is None or (definition, entry.update) in compared:
            continue
        compared.add((definition, entry.update))
        value = entry.value or {}
        verdict = schema.judge(1, entry.method, side, part, value)
        assert verdict is not None
        assert not (strictly_valid(1, definition, value) and verdict.faults), entry
    assert len(compared) > 8


def test_messages_of_one_shape_are_judged_once() -> None:
    judges = schema._schema(1, "schema")._judged
    judged(update(sessionUpdate="agent_thought_chunk", content=TEXT))
    before = len(judges)
    for number in range(50):
        content = {"type": "text", "text": f"text {number}"}
        params = update(sessionUpdate="agent_thought_chunk", content=content)
        assert judged(params | {"sessionId": f"s{number}"}).faults == []
    assert len(judges) == before


def test_words_that_matter_are_part_of_the_shape() -> None:
    document = json.loads((OFFICIAL / "v1/schema.json").read_text())
    names = decisive_names(document["$defs"])
    assert {"sessionUpdate", "type", "status", "stopReason", "kind", "outcome"} <= names
    assert not {"text", "sessionId", "cwd", "toolCallId", "optionId"} & names
    one, other = ({"status": status, "text": "x"} for status in ("completed", "odd"))
    assert shape_of(one, names) != shape_of(other, names)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(({"a": 1}, {"a": 1.5}), ({"a": None}, {}), ([1], [1, 1]), ({"a": True}, {"a": 1})),
        *(({"a": 1}, {"a": -1}), ({"a": []}, {"a": {}}), ({"a": "x"}, {"a": ["x"]})),
        ({"a": 1}, {"a": 1 << 40}),
    ],
)
def test_what_differs_in_kind_differs_in_shape(one: Any, other: Any) -> None:
    assert shape_of(one, frozenset()) != shape_of(other, frozenset())
    assert shape_of(one, frozenset()) == shape_of(json.loads(json.dumps(one)), frozenset())
