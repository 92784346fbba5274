"""What the tests of ACP version 2 share: an agent that speaks it, and the official schema."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tests.peers.agent import AgentLog, scripted_v2
from tests.peers.host import Frame
from tests.session.room import Room

SCHEMA = json.loads(
    (
        Path(__file__).parents[2] / "protocol_schemas/official/acp/v2/schema.unstable.json"
    ).read_text()
)
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def config(room: Room, *options: str, **more: Any) -> Frame:
    return room.config(**more) | {"command": scripted_v2(*options), "protocol_version": 2}


def opened(room: Room, *options: str, **more: Any) -> Any:
    """The result of opening a session of a version 2 agent."""
    return room.ok("open", config=config(room, *options, **more))


def call(**fields: Any) -> str:
    return "update " + json.dumps({"sessionUpdate": "tool_call_update", **fields})


def kinds(room: Room, turn: int | None) -> list[str]:
    return [event["update"]["sessionUpdate"] for event in room.events("update", turn=turn)]


def _definitions() -> dict[tuple[str, str], str]:
    found = {}
    for name, body in SCHEMA["$defs"].items():
        if "x-method" in body:
            part = next(p for p in ("Request", "Notification", "Response") if name.endswith(p))
            found[body["x-method"], part] = name
    return found


DEFINITIONS = _definitions()


def faults(log: AgentLog) -> Iterator[str]:
    """What the official schema of version 2 finds at fault in what an agent was sent."""
    for message in log.messages():
        method = message.get("method")
        if method is not None:
            assert message["jsonrpc"] == "2.0"
            part, value = ("Request" if "id" in message else "Notification"), message["params"]
        elif "result" in message and {"outcome", "action"} & set(message["result"]):
            elicited = "action" in message["result"]
            method = "elicitation/create" if elicited else "session/request_permission"
            part, value = "Response", message["result"]
        else:
            continue
        if method.startswith("_"):
            continue
        name = DEFINITIONS.get((method, part))
        if name is None:
            yield f"{method} is no {part} of version 2"
            continue
        schema = {"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}
        for error in Draft202012Validator(schema).iter_errors(value):
            yield f"{method} {part}: {error.json_path}: {error.message[:200]}"
