"""The official ACP JSON Schemas as judges of single messages.

Owns: which definition a message falls under (by method and side), and three verdicts on it: valid,
`read past` (what the schema tells receivers to put a default in place of), or at fault. Rule: what
only the schema with the proposals knows is valid too; a sender may be ahead of its time.
The files are those that `protocol_schemas/official` keeps, read as files. Used by
`conformance.judge`.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from jsonschema import Draft202012Validator

from conformance.wire import Json

FILES = Path(__file__).parents[1] / "protocol_schemas/official/acp"
VERSIONS = (1, 2)
Side = Literal["agent", "client"]
Part = Literal["Request", "Notification", "Response"]


class Opinion(NamedTuple):
    """What the schemas say of one message; both are empty for a valid one."""

    faults: list[str]
    read_past: list[str]


class _Schema:
    """One schema file: its definitions by method, strict and lenient."""

    def __init__(self, version: int, name: str) -> None:
        document = json.loads((FILES / f"v{version}" / f"{name}.json").read_text())
        self.defs: dict[str, Json] = document["$defs"]
        self._strict: Any = Draft202012Validator({"$defs": self.defs})
        self._lenient: Any = Draft202012Validator({"$defs": _lenient(self.defs)})
        self._names = {
            (body["x-method"], body["x-side"], part): name
            for name, body in self.defs.items()
            for part in ("Request", "Notification", "Response")
            if "x-method" in body and name.endswith(part)
        }

    def definition(self, method: str, side: Side, part: Part) -> str | None:
        for handler in (side, "protocol"):
            if (method, handler, part) in self._names:
                return self._names[method, handler, part]
        return None

    def faults(self, definition: str, value: Any, *, lenient: bool = False) -> list[str]:
        validator = self._lenient if lenient else self._strict
        return [_words(e) for e in validator.descend(value, {"$ref": f"#/$defs/{definition}"})]

    def members(self, name: str) -> set[str]:
        """Every member that some variant of the definition has."""
        found: set[str] = set()
        todo: list[Json] = [self.defs[name]]
        while todo:
            body = todo.pop()
            found |= set(body.get("properties", {}))
            if "$ref" in body:
                todo.append(self.defs[body["$ref"].rpartition("/")[2]])
            for key in ("allOf", "anyOf", "oneOf"):
                todo += body.get(key, [])
        return found


@cache
def _schema(version: int, name: str) -> _Schema:
    return _Schema(version, name)


@cache
def methods(version: int, side: Side) -> frozenset[str]:
    """Every method that this side handles, proposals included."""
    defs = _schema(version, "schema.unstable").defs.values()
    wanted = {side, "protocol"}
    return frozenset(body["x-method"] for body in defs if body.get("x-side") in wanted)


def opinion(version: int, method: str, side: Side, part: Part, value: Any) -> Opinion | None:
    """The verdict on params or a result; None where no schema knows the message.

    `side`: who handles the method.
    """
    first: list[str] = []
    known = False
    for name in ("schema", "schema.unstable"):
        schema = _schema(version, name)
        definition = schema.definition(method, side, part)
        if definition is None:
            continue
        known = True
        found = schema.faults(definition, value)
        if not found:
            return Opinion([], [])
        if not schema.faults(definition, value, lenient=True):
            return Opinion([], found)
        first = first or found
    return Opinion(first, []) if known else None


def strangers(version: int, method: str, side: Side, part: Part, value: Any) -> list[str]:
    """Members at the root of params or a result (and of an update) that are not the protocol's."""
    schema = _schema(version, "schema.unstable")
    definition = schema.definition(method, side, part)
    if definition is None or not isinstance(value, dict):
        return []
    body = cast("Json", value)
    found = set(body) - schema.members(definition)
    update = body.get("update")
    if method == "session/update" and isinstance(update, dict):
        names = schema.members("SessionUpdate")
        found |= {f"update.{key}" for key in cast("Json", update) if key not in names}
    return sorted(found)


def _lenient(node: Any) -> Any:
    """The schema with everything allowed where receivers are told to read past a value."""
    if isinstance(node, list):
        return [_lenient(item) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    body = {key: _lenient(value) for key, value in cast("Json", node).items()}
    if body.get("x-deserialize-default-on-error") is True:
        return {}
    if body.get("x-deserialize-skip-invalid-items") is True:
        body.pop("items", None)
    if body.get("x-deserialize-default-on-null") is True:
        return {"anyOf": [{"type": "null"}, body]}
    return body


def _words(error: Any) -> str:
    """Where and what, from the variant that the value was meant to be."""
    while error.context:
        branches: dict[Any, list[Any]] = {}
        for inner in error.context:
            branches.setdefault(inner.relative_schema_path[0], []).append(inner)
        meant = [
            errors
            for errors in branches.values()
            if not any(e.validator in ("const", "not", "type") for e in errors)
        ]
        if not meant:
            break
        error = meant[0][0]
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
    return f"{path.lstrip('.') or 'the whole'}: {str(error.message)[:200]}"
