"""The proxy's own answers: JSON errors in the shape that the agent's SDK reads.

Rule: the words name what is wrong and where, and hold no header, query or credential. Pure.
"""

import re
from typing import Literal

from bridge.wire import codec

Code = Literal[
    "model_upstream", "timeout", "bad_request", "limit", "not_found", "misdirected",
    "too_large", "unsupported_encoding", "internal",
]  # fmt: skip

STATUSES: dict[Code, int] = {
    "model_upstream": 502,
    "timeout": 504,
    "bad_request": 400,
    "limit": 400,
    "not_found": 404,
    "misdirected": 421,
    "too_large": 413,
    "unsupported_encoding": 415,
    "internal": 500,
}
_CODES: dict[int, Code] = {status: code for code, status in STATUSES.items() if code != "limit"}
_ANTHROPIC = re.compile(rb"^[^?]*/messages(?:/count_tokens|/batches(?:/[^?]*)?)?/?(?:\?|$)")
JSON_TYPE = (b"Content-Type", b"application/json")


def error(code: Code, message: str, *, anthropic: bool = False) -> bytes:
    """The body of an error: OpenAI's shape, or Anthropic's, which is wrapped once more."""
    inner = {"message": message, "type": "bridge_error", "code": code}
    return codec.encode({"type": "error", "error": inner} if anthropic else {"error": inner})


def refusal(status: int, message: str, target: bytes = b"") -> bytes:
    """The body for a request that the HTTP server itself refuses."""
    code = _CODES.get(status, "bad_request")
    return error(code, message, anthropic=is_anthropic(target))


def is_anthropic(target: bytes) -> bool:
    """Whether a target is of the Anthropic Messages API."""
    return _ANTHROPIC.search(target) is not None
