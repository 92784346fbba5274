"""JSON as it is written here, and as it is read: what comes from strangers may have any shape."""

import json
from typing import Any, cast

Json = dict[str, Any]


def compact(value: object) -> str:
    """Without blanks, in Unicode as it stands."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def mapping(value: object) -> Json:
    """The value if it is an object; else an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def objects(value: object) -> list[Json]:
    """The objects of what should be a list of them."""
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Json", item) for item in found if isinstance(item, dict)]
