"""The official ACP JSON Schemas as judges of single messages.

Owns: which definition a message falls under, by version, method and side; and the leniency that the
schemas declare (`x-deserialize-default-on-error`, `-default-on-null`, `-skip-invalid-items`): what
the protocol tells receivers to read past is no fault, but noted. Rule: a message is valid, unstable
(valid by the schema with the proposals only), or at fault. Used by `bridge.trace.check.shapes`.
"""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from typing import Any, Literal, NamedTuple

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend  # pyright: ignore[reportUnknownVariableType]

from bridge.trace.check.shape import Shape, decisive_names, shape_of

Part = Literal["Request", "Notification", "Response"]
_ON_ERROR = "x-deserialize-default-on-error"
_ON_NULL = "x-deserialize-default-on-null"
_SKIP_ITEMS = "x-deserialize-skip-invalid-items"
VERSIONS = (1, 2)


class Fault(NamedTuple):
    """Where in the message, and what is wrong there."""

    path: str
    words: str


class Verdict(NamedTuple):
    """`faults`: by the stable schema. `unstable`: valid by the other one. `read_past`: what a
    receiver replaces by its default."""

    faults: list[Fault]
    unstable: bool
    read_past: list[Fault]


class _Schema:
    """One schema file: its definitions by method, and a lenient validator for each."""

    def __init__(self, version: int, name: str) -> None:
        path = resources.files("protocol_schemas") / f"official/acp/v{version}/{name}.json"
        self._document: dict[str, Any] = json.loads(path.read_text())
        self.definitions: dict[tuple[str, str, Part], str] = {}
        for definition, body in self._document["$defs"].items():
            for part in ("Request", "Notification", "Response"):
                if "x-method" in body and definition.endswith(part):
                    self.definitions[body["x-method"], body["x-side"], part] = definition
        self._validators: dict[str, Any] = {}
        self._passed: list[Fault] = []
        self._decisive = decisive_names(self._document["$defs"])
        self._judged: dict[Shape, tuple[list[Fault], list[Fault]]] = {}

    def judge(self, definition: str, value: Any) -> tuple[list[Fault], list[Fault]]:
        """The faults, and what a receiver reads past."""
        shape = definition, shape_of(value, self._decisive)
        found = self._judged.get(shape)
        if found is None:
            found = self._judged[shape] = self._judge(definition, value)
        return found

    def _judge(self, definition: str, value: Any) -> tuple[list[Fault], list[Fault]]:
        validator = self._validators.get(definition)
        if validator is None:
            schema = {"$ref": f"#/$defs/{definition}", "$defs": self._document["$defs"]}
            validator = self._validators[definition] = _lenient(self._passed)(schema)
        self._passed.clear()
        errors = validator.iter_errors(value)
        faults = [Fault(_path(error.absolute_path), _words(error)) for error in errors]
        return faults, list(self._passed)


@cache
def _schema(version: int, name: str) -> _Schema:
    return _Schema(version, name)


def known_methods(version: int) -> frozenset[str]:
    """Every method of a version, proposals included."""
    return frozenset(method for method, _, _ in _schema(version, "schema.unstable").definitions)


def judge(version: int, method: str, side: str, part: Part, value: Any) -> Verdict | None:
    """The verdict on params or a result; None where no schema knows the message.

    `side`: who handles the method, `agent` or `client`.
    """
    stable, unstable = _schema(version, "schema"), _schema(version, "schema.unstable")
    for handler in (side, "protocol", "proxy"):
        key = (method, handler, part)
        if key in stable.definitions:
            faults, passed = stable.judge(stable.definitions[key], value)
            if faults and key in unstable.definitions:
                others, more = unstable.judge(unstable.definitions[key], value)
                if not others:
                    return Verdict([], True, more)
            return Verdict(faults, False, passed)
        if key in unstable.definitions:
            faults, passed = unstable.judge(unstable.definitions[key], value)
            return Verdict(faults, True, passed)
    return None


def _lenient(passed: list[Fault]) -> Any:
    """The validator class that reads past what the schema says to read past."""
    original: Any = Draft202012Validator.VALIDATORS
    trail: list[str | int] = []
    """Where in the message the validator is."""

    def inside(validator: Any, value: Any, subschema: Any, name: str | int) -> list[Any]:
        trail.append(name)
        errors = list(validator.descend(value, subschema, path=name, schema_path=name))
        trail.pop()
        return errors

    def pass_by(errors: list[Any]) -> None:
        passed.extend(
            Fault(_path([*trail, *error.absolute_path]), _words(error)) for error in errors
        )

    def properties(validator: Any, names: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if not validator.is_type(instance, "object"):
            return
        for name, subschema in names.items():
            if name not in instance:
                continue
            value = instance[name]
            if value is None and subschema.get(_ON_NULL):
                continue
            errors = inside(validator, value, subschema, name)
            if errors and subschema.get(_ON_ERROR):
                pass_by(errors)
            else:
                yield from errors

    def items(validator: Any, subschema: Any, instance: Any, schema: Any) -> Iterator[Any]:
        for index, item in enumerate(instance if validator.is_type(instance, "array") else ()):
            errors = inside(validator, item, subschema, index)
            if errors and schema.get(_SKIP_ITEMS):
                pass_by(errors)
            else:
                yield from errors

    def one_of(validator: Any, branches: Any, instance: Any, schema: Any) -> Iterator[Any]:
        yield from _union("oneOf", validator, branches, instance, schema)

    def any_of(validator: Any, branches: Any, instance: Any, schema: Any) -> Iterator[Any]:
        yield from _union("anyOf", validator, branches, instance, schema)

    def _union(
        keyword: str, validator: Any, branches: Any, instance: Any, schema: Any
    ) -> Iterator[Any]:
        tag = _tag(branches)
        if tag is None or not isinstance(instance, dict):
            before = len(passed)
            errors = list(original[keyword](validator, branches, instance, schema))
            if len(branches) > 1:
                # What some other branch would have read past is nothing of this value.
                del passed[before:]
            yield from errors
            return
        rest = [branch for branch in branches if _constant(branch, tag) is None]
        value = instance.get(tag)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        for branch in branches:
            if value is not None and _constant(branch, tag) == value:
                yield from validator.descend(instance, branch)
                return
        if any(validator.evolve(schema=branch).is_valid(instance) for branch in rest):
            return
        known = ", ".join(repr(_constant(b, tag)) for b in branches if b not in rest)
        words = f"{tag} is missing" if value is None else f"{tag} {value!r} is none of {known}"
        yield ValidationError(words)

    checks = {"properties": properties, "items": items, "oneOf": one_of, "anyOf": any_of}
    return extend(Draft202012Validator, checks)  # pyright: ignore[reportUnknownVariableType]


def _constant(branch: dict[str, Any], tag: str) -> Any:
    return branch.get("properties", {}).get(tag, {}).get("const")


def _tag(branches: list[dict[str, Any]]) -> str | None:
    """The property whose constant tells the branches apart."""
    for branch in branches:
        for name, subschema in branch.get("properties", {}).items():
            if isinstance(subschema, dict) and "const" in subschema:
                return name
    return None


def _path(path: Iterable[str | int]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).lstrip(".")


def _words(error: Any) -> str:
    words = str(error.message)
    return words if len(words) < 200 else words[:197] + "..."
