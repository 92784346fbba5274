"""A list of models in the place of an upstream that has none: agents ask for it at their start.

Rule: it claims no more than is known, the names that options and requests have given; where an
upstream has a list, even an empty one, that is passed on. Pure; used by bridge.model.relay.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from bridge.wire import codec

MISSING = frozenset((404, 405, 501))
"""The statuses of an upstream that has no such list."""
_EPOCH = "1970-01-01T00:00:00Z"


def asked_for(path: str) -> bool:
    """Whether a GET of this path asks for the list, not for one model."""
    return path.removesuffix("/").endswith("/models")


def listing(names: Iterable[str], path: str, fields: Mapping[bytes, bytes]) -> bytes:
    """The list in the shape of the API that the request is of: by its path and headers."""
    if b"anthropic-version" in fields:
        return codec.encode(_anthropic(list(names)))
    if "/v1beta/" in path or b"x-goog-api-key" in fields:
        return codec.encode({"models": [_gemini(name) for name in names]})
    data = [{"id": name, "object": "model", "created": 0, "owned_by": "upstream"} for name in names]
    return codec.encode({"object": "list", "data": data})


def _anthropic(names: list[str]) -> dict[str, Any]:
    data = [
        {"type": "model", "id": name, "display_name": name, "created_at": _EPOCH} for name in names
    ]
    ends = {"first_id": names[0], "last_id": names[-1]} if names else {}
    return {"data": data, "has_more": False, "first_id": None, "last_id": None, **ends}


def _gemini(name: str) -> dict[str, Any]:
    methods = ["generateContent", "countTokens"]
    return {
        "name": f"models/{name.removeprefix('models/')}",
        "displayName": name,
        "supportedGenerationMethods": methods,
    }
