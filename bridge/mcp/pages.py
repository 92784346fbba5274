"""Lists that come in pages, read whole: all pages in one session, since a cursor is the session's.

Rule: a cursor that comes back a second time ends the list, so that no server keeps us for ever;
an empty one is how some servers say that there is no more.
Called by catalogues and by calls that pass a list on.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bridge.mcp import messages
from bridge.mcp.channel import Fault
from bridge.mcp.messages import Answer, Members
from bridge.mcp.session import Session
from bridge.wire.codec import Raw

ITEMS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""A list's method -> the member of its result that holds the items."""

_MOST_PAGES = 10_000
_NO_MORE = (b"null", b'""')


class Listed(NamedTuple):
    """All items, and the last page's other members (without its cursor)."""

    items: list[Raw]
    rest: Members


async def listed(session: Session, method: str, params: Mapping[str, Any] = {}) -> Listed | Answer:
    """All pages of a list; or the error the server gave for one. Raises Fault."""
    key = ITEMS[method]
    items: list[Raw] = []
    seen: set[bytes] = set()
    asked = dict(params)
    asked.pop("cursor", None)
    rest: Members = {}
    for _ in range(_MOST_PAGES):
        answer = await session.ask(method, asked)
        if answer.result is None:
            return answer
        rest = messages.members(answer.result) or {}
        items += _items(rest.pop(key, Raw(b"null")), method)
        cursor = rest.pop("nextCursor", None)
        if cursor is None or bytes(cursor) in _NO_MORE or bytes(cursor) in seen:
            break
        seen.add(bytes(cursor))
        asked["cursor"] = cursor
    return Listed(items, rest)


def _items(raw: Raw, method: str) -> list[Raw]:
    if bytes(raw) == b"null":
        return []
    found = messages.items(raw)
    if found is None:
        raise Fault("opening", f"the answer to {method} has no list in it")
    return found


async def whole(session: Session, method: str, params: Mapping[str, Any]) -> Answer:
    """A list as one answer without a cursor; or the error. Raises Fault."""
    found = await listed(session, method, params)
    if isinstance(found, Answer):
        return found
    return messages.result({ITEMS[method]: found.items, **found.rest})
