"""One endpoint's view of the servers: all of them under prefixed names, or one under its own.

Owns: which name means what (`bridge.mcp.names` makes the table), and how the endpoint presents
itself. Rule: what a lone server says of itself is said as it is; of several, the union.
Made by the front, used by `bridge.mcp.dispatch`.
"""

import random
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import anyio

from bridge.mcp import eras, names
from bridge.mcp.catalogue import LISTING_BOUND, Catalogue, Tool
from bridge.mcp.eras import Client, Era
from bridge.mcp.hub import Hub
from bridge.mcp.messages import members
from bridge.mcp.server import Server
from bridge.rules import retry
from bridge.wire import codec
from bridge.wire.codec import Raw

Json = dict[str, Any]

_DOWN_WAIT = 2.0
_OPENING_WAIT = 20.0
_OF_ONE_SERVER = frozenset(("experimental", "extensions"))
_OFFERED = ("tools", "resources", "prompts", "completions", "logging", "experimental", "extensions")


class Found(NamedTuple):
    """A tool that a name stands for; it is in the catalogue unless its server was never listed."""

    catalogue: Catalogue
    name: str

    @property
    def server(self) -> Server:
        return self.catalogue.server

    @property
    def tool(self) -> Tool | None:
        """As it is known now."""
        return self.catalogue.tools.get(self.name)


class View:
    """`only` is the server of `/mcp/NAME`, None for `/mcp` and its prefixed names."""

    def __init__(self, hub: Hub, only: str | None = None) -> None:
        self.hub = hub
        self.only = only
        self._names = list(hub.servers) if only is None else [only]

    @property
    def servers(self) -> list[Server]:
        return [self.hub.servers[name] for name in self._names]

    @property
    def lone(self) -> Server | None:
        """The server whose own words this view passes on, if it has one server alone."""
        return None if self.only is None else self.hub.servers[self.only]

    def catalogues(self, client: Client) -> dict[str, Catalogue]:
        """The servers' lists for a client, by server."""
        return {name: self.hub.catalogue(name, client) for name in self._names}

    # -- names ----------------------------------------------------------------------------------

    def table(self, kind: str, offered: Iterable[tuple[str, str]]) -> dict[str, tuple[str, str]]:
        """The advertised names of tools or prompts; raises DuplicateName."""
        prefixed, short = self.only is None, self.hub.short_names
        return names.table(kind, offered, prefixed=prefixed, short=short)

    def tools(self, known: Mapping[str, Catalogue]) -> dict[str, tuple[str, str]]:
        """Advertised name -> (server, tool), of these lists; raises DuplicateName."""
        return self.table("tool", ((name, tool) for name in known for tool in known[name].tools))

    def tool_list(self, client: Client) -> list[Raw]:
        """The tools as they are advertised to a client; raises DuplicateName."""
        known = self.catalogues(client)
        found: list[Raw] = []
        for shown, (server, name) in self.tools(known).items():
            raw = known[server].tools[name].raw
            found.append(raw if shown == name else renamed(raw, shown))
        return found

    async def find_tool(self, name: str, client: Client) -> Found | None:
        """What a name stands for, listing anew if it is not known; raises DuplicateName."""
        known = self.catalogues(client)
        base = {server: self.hub.catalogues[server] for server in known}
        found = self._known_tool(name, known) or self._known_tool(name, base)
        if found is not None:
            return found
        await _listed_again(known.values())
        found = self._known_tool(name, known)
        if found is not None:
            return found
        if self.only is not None and not known[self.only].known:
            # It cannot be listed now, but it may well be called: that has attempts of its own.
            return Found(known[self.only], name)
        return await self._awaited_tool(name, known)

    async def _awaited_tool(self, name: str, known: Mapping[str, Catalogue]) -> Found | None:
        """A tool that may be one of a server that could not be listed yet: listing is tried as
        often as the call would be, since it opens the same session."""
        missing = [
            catalogue
            for server, catalogue in known.items()
            if not catalogue.known and (not server or name.startswith(f"{server}_"))
        ]
        for attempt in range(1, max((one.server.policy.attempts for one in missing), default=0)):
            backoff = missing[0].server.policy.backoff
            await anyio.sleep(retry.wait_before_next(attempt, backoff, None, random.random))
            await _listed_again(missing)
            if (found := self._known_tool(name, known)) is not None:
                return found
        return None

    def _known_tool(self, name: str, known: Mapping[str, Catalogue]) -> Found | None:
        if self.only is not None and not self.hub.short_names:
            # No table is needed where names are the server's own.
            return Found(known[self.only], name) if name in known[self.only].tools else None
        place = self.tools(known).get(name)
        return None if place is None else Found(known[place[0]], place[1])

    # -- being up to date -----------------------------------------------------------------------

    async def fresh(self, client: Client) -> None:
        """Waits for what has never been listed, and has old lists listed anew."""
        known: Mapping[str, Catalogue] = {}
        # A first listing can show that the server has another list for this client.
        while known != (known := self.catalogues(client)):
            async with anyio.create_task_group() as tasks:
                for catalogue in known.values():
                    down = catalogue.failure is not None
                    tasks.start_soon(catalogue.fresh, _DOWN_WAIT if down else LISTING_BOUND)

    async def met(self, era: Era) -> None:
        """Waits until each server can be presented to callers of an era; bounded."""
        with anyio.move_on_after(_OPENING_WAIT):
            await self.hub.listed(_OPENING_WAIT)
            async with anyio.create_task_group() as tasks:
                for server in self.servers:
                    tasks.start_soon(self.hub.describe, server, era)

    # -- presentation ---------------------------------------------------------------------------

    def capabilities(self, era: Era) -> Json:
        """What can be asked for here."""
        offered: Json = {}
        for server in self.servers:
            about = server.about(era)
            known = {} if about is None else about.capabilities
            for name in _OFFERED:
                if name in known and (self.lone is not None or name not in _OF_ONE_SERVER):
                    value = codec.mapping(codec.decode(known[name])) or {}
                    offered[name] = {**offered.get(name, {}), **value}
        # Tools come and go with their servers, whatever these say themselves.
        offered["tools"] = {**offered.get("tools", {}), "listChanged": True}
        return offered

    def presentation(self, era: Era) -> Json:
        """Who this is: `serverInfo` and, if there are any, `instructions`."""
        lone = self.lone
        if lone is not None:
            about = lone.about(era)
            said: Json = {"serverInfo": {**eras.OUR_INFO, "name": lone.name or "acp-mcp-bridge"}}
            if about is not None and about.info is not None:
                said["serverInfo"] = about.info
            if about is not None and about.instructions is not None:
                said["instructions"] = about.instructions
            return said
        parts: list[str] = []
        for server in self.servers:
            about = server.about(era)
            if about is not None and about.instructions is not None:
                words = codec.decode(about.instructions)
                parts.append(f"{server.name}:\n{words}" if server.name else str(words))
        instructions = {"instructions": "\n\n".join(parts)} if parts else {}
        return {"serverInfo": eras.OUR_INFO, **instructions}


async def _listed_again(catalogues: Iterable[Catalogue]) -> None:
    async def again(catalogue: Catalogue) -> None:
        down = catalogue.failure is not None
        with anyio.move_on_after(_DOWN_WAIT if down else LISTING_BOUND):
            await catalogue.refresh()

    async with anyio.create_task_group() as tasks:
        for catalogue in catalogues:
            tasks.start_soon(again, catalogue)


def renamed(raw: Raw, name: str) -> Raw:
    """A tool or prompt under its advertised name, its other members as they are."""
    fields: Json = dict(members(raw) or {})
    fields["name"] = name
    return Raw(codec.encode(fields))
