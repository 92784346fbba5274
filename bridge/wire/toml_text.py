"""JSON-like values as TOML 1.0 text, one key a line, what is nested inline. Pure.

For the few settings files that node agents read in TOML; called by `bridge.agent.rendering`.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from bridge.wire import codec

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def dumps(table: Mapping[str, Any]) -> str:
    """The document for a table of strings, numbers, booleans, lists and tables."""
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in table.items())


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value).items()
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in entries) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, cast("list[Any]", value))) + "]"
    return codec.encode(value).decode()


def _string(text: str) -> str:
    """JSON's escapes are TOML's, but that TOML wants DEL escaped, too."""
    return codec.encode(text).decode().replace("\x7f", "\\u007f")
