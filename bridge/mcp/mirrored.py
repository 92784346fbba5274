"""The headers of a 2026-07-28 request that mirror its body, so that intermediaries can route it.

Owns: `Mcp-Method`, `Mcp-Name`, `Mcp-Param-*`: written for a server, checked for a caller. Rule:
what is no annotation by the letter of the specification is none. Source: MCP 2026-07-28,
transports, "Standard headers" and "Custom headers". Pure.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from bridge.wire import codec

NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Method -> the parameter that `Mcp-Name` carries."""

_ANNOTATION = "x-mcp-header"
_PREFIX = "Mcp-Param-"
_WRAPPED = re.compile(r"=\?base64\?(.*)\?=")
_PLAIN = re.compile(r"[\x20-\x7e]*")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_DECIMAL = re.compile(r"(-?[0-9]+)(?:\.0+)?")
_TYPES = ("string", "integer", "boolean")
_ONE = frozenset(
    (
        *("items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames"),
        *("unevaluatedProperties", "not", "if", "then", "else", "contentSchema"),
    )
)
_LISTED = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_NAMED = frozenset(("patternProperties", "dependentSchemas", "$defs", "definitions"))

Json = dict[str, Any]


class Mirror(NamedTuple):
    """One annotated argument: the way to it, the header that carries it, its JSON type."""

    path: tuple[str, ...]
    header: str
    type: str


def wrap(value: str) -> str:
    """A value as a header can carry it: as it is, or in base64 where it would not survive."""
    if _PLAIN.fullmatch(value) and value == value.strip() and not _WRAPPED.fullmatch(value):
        return value
    data = value.encode(errors="surrogatepass")
    return f"=?base64?{base64.b64encode(data).decode()}?="


def unwrap(value: str) -> str | None:
    """The way back; None for base64 that is none."""
    match = _WRAPPED.fullmatch(value)
    if match is None:
        return value
    try:
        data = base64.b64decode(match[1], validate=True)
        text = data.decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return text if base64.b64encode(data).decode() == match[1] else None


def mirrors(schema: Any) -> list[Mirror] | None:
    """The annotated arguments of a tool's input schema; None if an annotation is not valid.

    Valid: on a string, integer or boolean, reached by `properties` alone, naming a header token
    that no other one names.
    """
    found: list[Mirror] = []
    for path, node in _positions(schema):
        if _ANNOTATION not in node:
            continue
        header, kind = node[_ANNOTATION], node.get("type")
        if not path or not isinstance(header, str) or not _TOKEN.fullmatch(header):
            return None
        if not isinstance(kind, str) or kind not in _TYPES:
            return None
        found.append(Mirror(path, _PREFIX + header, kind))
    taken = {mirror.header.lower() for mirror in found}
    return found if len(taken) == len(found) else None


def _positions(schema: Any) -> Iterator[tuple[tuple[str, ...] | None, Json]]:
    """Every schema in a schema, with the `properties` way to it; None off that way."""
    rest: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
    while rest:
        path, value = rest.pop()
        node = codec.mapping(value)
        if node is None:
            continue
        yield path, node
        for key, below in node.items():
            if key == "properties":
                for name, item in (codec.mapping(below) or {}).items():
                    rest.append((None if path is None else (*path, name), item))
            elif key in _ONE:
                rest.append((None, below))
            elif key in _LISTED and isinstance(below, list):
                rest.extend((None, item) for item in cast(list[Any], below))
            elif key in _NAMED:
                rest.extend((None, item) for item in (codec.mapping(below) or {}).values())


def param_headers(found: Sequence[Mirror], arguments: Any) -> list[tuple[str, str]]:
    """The `Mcp-Param-*` headers for a call's arguments."""
    headers: list[tuple[str, str]] = []
    for mirror in found:
        text = _text(_at(arguments, mirror.path))
        if text is not None:
            headers.append((mirror.header, wrap(text)))
    return headers


def mismatch(
    found: Sequence[Mirror], arguments: Any, headers: Mapping[str, Sequence[str]]
) -> str | None:
    """What is wrong with a call's `Mcp-Param-*` headers (by lower-case name), or None."""
    for mirror in found:
        sent = headers.get(mirror.header.lower(), ())
        value = _at(arguments, mirror.path)
        text = _text(value)
        where = ".".join(mirror.path)
        if len(sent) > 1:
            return f"{mirror.header} appears more than once"
        if text is None:
            if sent:
                return f"{mirror.header} is sent, but the argument {where!r} has no such value"
        elif not sent:
            return f"{mirror.header} is missing, but the argument {where!r} is there"
        elif not _same(mirror, value, text, sent[0]):
            return f"{mirror.header} does not match the argument {where!r}"
    return None


def _same(mirror: Mirror, value: Any, text: str, sent: str) -> bool:
    said = unwrap(sent)
    if said is None or mirror.type != "integer" or isinstance(value, bool):
        return said == text
    number = _DECIMAL.fullmatch(said)
    if number is None or not isinstance(value, int | float) or len(number[1]) > 4000:
        return said == text
    return int(number[1]) == value


def _at(arguments: Any, path: Sequence[str]) -> Any:
    value = arguments
    for name in path:
        value = (codec.mapping(value) or {}).get(name)
    return value


def _text(value: Any) -> str | None:
    """A value as a header says it; None where it says nothing."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return codec.encode(value).decode()
    return None
