"""The shape of a JSON value: equal for values that a schema cannot tell apart.

Owns: which strings matter. A trace has thousands of messages that differ in their texts and ids
only; judging one of each shape judges them all, and that is a thousand times as fast. Rule: in
doubt two shapes differ. Pure; used by `bridge.trace.check.schema`.
"""

from collections.abc import Iterator
from typing import Any

_CONSTRAINTS = ("const", "enum", "pattern", "format", "minLength", "maxLength", "not")
_INSIDE = ("allOf", "anyOf", "oneOf")

Shape = Any
"""Something hashable."""


def decisive_names(definitions: dict[str, Any]) -> frozenset[str]:
    """The property names under which a string's value, and not only its being one, matters."""
    found: set[str] = set()
    for body in definitions.values():
        for name, subschema in _properties(body):
            if _constrains(subschema, definitions, frozenset()):
                found.add(name)
    return frozenset(found)


def _properties(schema: Any) -> Iterator[tuple[str, Any]]:
    """All properties anywhere in a schema."""
    if isinstance(schema, dict):
        for key, value in schema.items():  # pyright: ignore[reportUnknownVariableType]
            if key == "properties" and isinstance(value, dict):
                yield from value.items()  # pyright: ignore[reportUnknownVariableType]
            yield from _properties(value)
    elif isinstance(schema, list):
        for item in schema:  # pyright: ignore[reportUnknownVariableType]
            yield from _properties(item)


def _constrains(schema: Any, definitions: dict[str, Any], seen: frozenset[str]) -> bool:
    if not isinstance(schema, dict):
        return False
    if any(key in schema for key in _CONSTRAINTS):
        return True
    reference = str(schema.get("$ref", "")).rpartition("/")[2]  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    known = reference in definitions and reference not in seen
    if known and _constrains(definitions[reference], definitions, seen | {reference}):
        return True
    parts: list[Any] = [part for key in _INSIDE for part in schema.get(key, [])]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    parts.append(schema.get("items"))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    return any(_constrains(part, definitions, seen) for part in parts)


def shape_of(value: Any, decisive: frozenset[str], *, matters: bool = True) -> Shape:
    """The shape of a value. `matters`: whether its own text does, if it is a string."""
    if isinstance(value, dict):
        return tuple(
            (key, shape_of(item, decisive, matters=key in decisive))
            for key, item in sorted(value.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        )
    if isinstance(value, list):
        return "[]", tuple(shape_of(item, decisive, matters=matters) for item in value)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, str):
        return (value,) if matters else "s"
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        # Limits of integers are powers of two, and zero.
        return value.bit_length() // 8, value > 0, value < 0
    return "f"
