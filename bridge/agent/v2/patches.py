"""Version 2's three-state fields: left out is unchanged, null is cleared, a value replaces.

Owns: objects whose members stay the bytes they came in, so that none of the three is ever
serialised away, and no field is lost for being unknown. Pure; used by all of `bridge.agent.v2`.
"""

from typing import Any

import msgspec

from bridge.wire import codec
from bridge.wire.codec import Raw

Members = dict[str, Raw]
"""An object's members, each value as its JSON text."""

NULL = Raw(b"null")
_decode = msgspec.json.Decoder(Members).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode


def members(raw: Raw | bytes) -> Members:
    """The members of an object; none of any other value. Raises codec.JSONError."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # What msgspec refuses (lone surrogates, NaN), or no object.
        fields = codec.mapping(codec.decode(raw)) or {}
        return {name: Raw(codec.encode(value)) for name, value in fields.items()}


def items(raw: Raw | bytes) -> list[Raw]:
    """The items of an array; none of any other value. Raises codec.JSONError."""
    try:
        return _decode_list(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = codec.decode(raw)
        return [Raw(codec.encode(item)) for item in value] if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def is_null(raw: Raw) -> bool:
    """Whether the value is null: the order to clear a field."""
    return raw == NULL


def text(raw: Raw | None) -> str | None:
    """The value if it is a string."""
    return codec.decode(raw) if raw is not None and _first(raw) == b'"' else None


def is_object(raw: Raw | None) -> bool:
    """Whether the value is there and an object: how version 2 says that something is offered."""
    return raw is not None and _first(raw) == b"{"


def _first(raw: Raw) -> bytes:
    # A Raw cannot be sliced itself.
    return bytes(memoryview(raw)[:1])


def raw(value: Any) -> Raw:
    """A value as its JSON text."""
    return Raw(codec.encode(value))


def apply(stored: Members, change: Members) -> None:
    """Patches an entity: null clears, a value replaces, `_meta` is patched by its own keys."""
    for name, value in change.items():
        if is_null(value):
            stored.pop(name, None)
        elif name == "_meta" and is_object(value) and name in stored:
            merged = members(stored[name])
            apply(merged, members(value))
            stored[name] = raw(merged)
        else:
            # A copy lets go of the line it stands in.
            stored[name] = value.copy()
