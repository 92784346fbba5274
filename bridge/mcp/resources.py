"""Resources, prompts and completions of several servers, as one endpoint offers them.

Owns: which server a URI or a prompt's name belongs to, when the endpoint has more than one.
Rules: URIs stay as they are, so that one of two servers' is an error that names both; prompts are
prefixed like tools. Called by `bridge.mcp.dispatch` and, for subscriptions, `bridge.mcp.peer`.
"""

import re

import anyio

from bridge.log import log
from bridge.mcp import messages, pages
from bridge.mcp.call import GaveUp, Plan, reads
from bridge.mcp.eras import Era
from bridge.mcp.messages import Answer
from bridge.mcp.relay import Caller
from bridge.mcp.server import Server
from bridge.mcp.view import View, renamed
from bridge.wire import codec
from bridge.wire.codec import Raw

_CAPABILITY = {
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "prompts/list": "prompts",
}
_IDENTITY = {
    "resources/list": "uri",
    "resources/templates/list": "uriTemplate",
    "prompts/list": "name",
}


class Ambiguous(Exception):
    """More than one server has what was asked for, or none; the text says which."""


class Items:
    """One server's list, each item with what identifies it (a URI, a template, a name)."""

    def __init__(self, server: Server, method: str, items: list[Raw]) -> None:
        self.server = server
        self.items: list[tuple[str, Raw]] = []
        for raw in items:
            value = (messages.members(raw) or {}).get(_IDENTITY[method])
            identity = codec.decode(value) if value is not None else None
            if isinstance(identity, str):
                self.items.append((identity, raw))


async def gathered(view: View, method: str, caller: Caller) -> list[Items]:
    """The lists of all servers that have one, in the servers' order. One that fails is left out,
    which is logged."""
    era = caller.client.era
    asked = [server for server in view.servers if _has(server, _CAPABILITY[method], era)]
    found: dict[str, Items] = {}

    async def one(server: Server) -> None:
        plan = Plan(server, method, {}, "Request", method, reads, pages=True)
        try:
            answer = await view.hub.answer(plan, caller)
        except GaveUp as error:
            log.warning("%s", error)
            return
        fields = messages.members(answer.result or b"{}") or {}
        listed = messages.items(fields.get(pages.ITEMS[method], Raw(b"[]"))) or []
        found[server.name] = Items(server, method, listed)

    async with anyio.create_task_group() as tasks:
        for server in asked:
            tasks.start_soon(one, server)
    return [found[server.name] for server in asked if server.name in found]


def _has(server: Server, capability: str, era: Era) -> bool:
    about = server.about(era)
    return about is None or capability in about.capabilities


async def merged(view: View, method: str, caller: Caller) -> Answer:
    """One list of all servers'; raises DuplicateName."""
    lists = await gathered(view, method, caller)
    if method != "prompts/list":
        items = [raw for listed in lists for _, raw in listed.items]
        return messages.result({pages.ITEMS[method]: items})
    by_place = {(listed.server.name, name): raw for listed in lists for name, raw in listed.items}
    shown = view.table("prompt", by_place)
    return messages.result(
        {"prompts": [renamed(by_place[place], name) for name, place in shown.items()]}
    )


async def owner_of_prompt(view: View, name: str, caller: Caller) -> tuple[Server, str] | None:
    """The server and its own name of a prompt; raises DuplicateName."""
    lists = await gathered(view, "prompts/list", caller)
    offered = [(listed.server.name, own) for listed in lists for own, _ in listed.items]
    place = view.table("prompt", offered).get(name)
    return None if place is None else (view.hub.servers[place[0]], place[1])


async def owner_of_uri(view: View, uri: str, caller: Caller) -> Server:
    """The server that has a resource: by its list, else by its templates; raises Ambiguous."""
    for method, fits in (("resources/list", str.__eq__), ("resources/templates/list", _matches)):
        lists = await gathered(view, method, caller)
        owners = [
            listed.server for listed in lists if any(fits(known, uri) for known, _ in listed.items)
        ]
        if len(owners) == 1:
            return owners[0]
        if owners:
            named = " and ".join(repr(server.name) for server in owners)
            raise Ambiguous(
                f"resource {uri!r} is offered by servers {named}: ask at the server's own URL"
            )
    era = caller.client.era
    able = [server for server in view.servers if _has(server, "resources", era)]
    if len(able) == 1:
        return able[0]
    raise Ambiguous(f"no server lists the resource {uri!r}: ask at the server's own URL")


def _matches(template: str, uri: str) -> bool:
    """Whether a URI can come of a template (RFC 6570): an expression stands for any text."""
    if template == uri:
        return True
    parts = re.split(r"\{[^}]*\}", template)
    return len(parts) > 1 and re.fullmatch(".*".join(map(re.escape, parts)), uri) is not None
