"""The servers of one session (or one file), and what goes on between them and their callers.

Owns: servers and catalogues by name, and who is told when a list has changed. Rule: servers are
independent: one that is down, slow or wrong changes nothing for the others.
Made by `bridge.mcp.service` (one a mount) and `alone`; looked at through `bridge.mcp.view`.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup

from bridge.io.family import Family
from bridge.mcp import eras
from bridge.mcp.attempt import Attempt
from bridge.mcp.call import Call, Plan, Tap, unheeded
from bridge.mcp.catalogue import Catalogue
from bridge.mcp.eras import Client, Era
from bridge.mcp.messages import Answer
from bridge.mcp.parked import Lot
from bridge.mcp.relay import Caller
from bridge.mcp.server import Server
from bridge.mcp.session import Deaf, Session
from bridge.mcp.settings import Upstream
from bridge.wire import codec

if TYPE_CHECKING:
    from bridge.mcp.origin import Heads

Json = dict[str, Any]
Told = Callable[[str, str], None]
"""Takes (server, the notification's method); never waits and never raises."""

_MOST_LISTS = 8
_DESCRIBING = 10.0
_CANCELLED = "the turn it was made in was cancelled"
_CLOSED = "its session was closed"


class Hub:
    """`on_event` is given one event an attempt; `alive` is called whenever a call gets on."""

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        *,
        family: Family,
        tasks: TaskGroup,
        on_event: Callable[[Json], None],
        tap: Tap | None = None,
        heads: "Heads | None" = None,
        alive: Callable[[], None] = unheeded,
        short_names: bool = False,
    ) -> None:
        self.servers = {
            upstream.name: Server(upstream, family, tasks, heads) for upstream in upstreams
        }
        self.catalogues = {
            name: Catalogue(server, tasks, self._listed_anew, heard=self._is_heard)
            for name, server in self.servers.items()
        }
        self._others: dict[tuple[str, Era, bytes], Catalogue] = {}
        self._watched: TaskGroup | None = None
        self.parked = Lot(tasks)
        self.short_names = short_names
        self.tasks = tasks
        """Where what outlives a request runs."""
        self._on_event = on_event
        self._tap = tap
        self._alive = alive
        self._told: dict[object, Told] = {}
        self._calls: set[Call] = set()
        self._over = float("-inf")
        self._closed = False
        self._scope = anyio.CancelScope()

    def start(self) -> None:
        """Has every server listed, and looked after from then on."""
        self.tasks.start_soon(self._watch)

    async def _watch(self) -> None:
        with self._scope:
            async with anyio.create_task_group() as self._watched:
                for catalogue in (*self.catalogues.values(), *self._others.values()):
                    self._watched.start_soon(catalogue.watch)

    async def listed(self, within: float) -> None:
        """Returns when each server has been tried, or after `within` seconds."""
        with anyio.move_on_after(within):
            for catalogue in self.catalogues.values():
                await catalogue.tried()

    async def describe(self, server: Server, era: Era) -> None:
        """Has the server say what it is in an era, unless it has, or does not speak it."""
        if era in server.abouts or server.verdicts.known[era] is False or not server.abouts:
            return
        attempt = Attempt(
            server,
            eras.ourselves(era),
            Deaf(),
            _nothing,
            timeout=_DESCRIBING,
            describe=True,
            quiet=True,
        )
        await attempt.result(self.tasks)

    def catalogue(self, server: str, client: Client) -> Catalogue:
        """The server's list for clients like this one.

        Most servers have one list for all. Others go by what a client can be asked for, and those
        of two eras may have a list in each.
        """
        base = self.catalogues[server]
        era, abilities = base.server.spoken(client.era), client.abilities
        if not abilities and base.era in (era, None):
            return base
        key = (server, era, codec.encode(abilities))
        found = self._others.get(key)
        if found is None:
            if len(self._others) >= _MOST_LISTS * len(self.servers):
                return base
            like_it = eras.ourselves(era, abilities)
            found = Catalogue(base.server, self.tasks, self._listed_anew, like_it, self._is_heard)
            self._others[key] = found
            if self._watched is not None:
                self._watched.start_soon(found.watch)
        return found

    def close(self) -> None:
        """Stops looking after the servers and closes idle connections."""
        self._scope.cancel()
        self.parked.end()
        for server in self.servers.values():
            server.close()

    async def answer(self, plan: Plan, caller: Caller) -> Answer:
        """Makes a call; raises GaveUp."""
        call = Call(
            plan,
            caller,
            tasks=self.tasks,
            changed=self.changed,
            on_event=self._on_event,
            tap=self._tap,
            alive=self._alive,
        )
        if self._closed:
            call.end(_CLOSED)
        elif call.began < self._over:
            # Its tool was being looked up when the others ended.
            call.end(_CANCELLED)
        self._calls.add(call)
        try:
            return await call.answer()
        finally:
            self._calls.discard(call)

    def end_all(self) -> None:
        """Ends every call, the host's too; there are no more."""
        self._closed = True
        for call in self._calls:
            call.end(_CLOSED)

    def end_calls(self, before: float) -> None:
        """Ends the agent's tool calls from before a moment: those of a turn that was cancelled
        then."""
        self._over = max(self._over, before)
        for call in self._calls:
            if call.began < before:
                call.end(_CANCELLED)

    # -- what has changed -----------------------------------------------------------------------

    def subscribe(self, told: Told) -> Callable[[], None]:
        """Has `told` called for every change of a list; the result ends that."""
        key = object()
        self._told[key] = told

        def unsubscribe() -> None:
            self._told.pop(key, None)

        return unsubscribe

    def _is_heard(self) -> bool:
        return bool(self._told)

    def changed(self, server: Server, method: str) -> None:
        """A server said that a list of its has changed."""
        if method == eras.TOOLS_CHANGED:
            # Listed first: whoever is told asks at once, and shall get the new list.
            for catalogue in (*self.catalogues.values(), *self._others.values()):
                if catalogue.server is server:
                    catalogue.spoil()
        else:
            self._tell(server, method)

    def _listed_anew(self, server: Server) -> None:
        self._tell(server, eras.TOOLS_CHANGED)

    def _tell(self, server: Server, method: str) -> None:
        for told in list(self._told.values()):
            told(server.name, method)


async def _nothing(session: Session) -> bool:
    """Opening the session has told what there is to know."""
    return True
