"""The model proxy as the daemon holds it: `ModelProxy`, one listening address, many routes.

    async with ModelProxy(on_event=...) as proxy:
        url = proxy.route("http://127.0.0.1:9000/v1", session="", options=ModelOptions())
        # "http://127.0.0.1:41234/Zk3…/v1": stands for that upstream, for that session

Owns: the listening side, one pool a distinct upstream, the sessions' accounts; all end with it.
Rule: nothing of HTTP is imported, and no address is bound, before the first route is asked for.
Used by bridge.session and bridge.cli.model.
"""

import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from bridge.io.background import Background
from protocol_schemas.model import ModelOptions

if TYPE_CHECKING:
    from bridge.io.httppool import Origin, Pool
    from bridge.model.front import Front
    from bridge.model.ledger import Account
    from bridge.model.record import Tap
    from bridge.model.upstream import Upstream
    from protocol_schemas.model import ModelTurn
    from protocol_schemas.profile import SideCall


class ModelProxy:
    """Listens on `host` and `port` (any free one) from the first route on.

    `on_event` gets a ModelEvent as a dict for each exchange that has ended; `tap` everything that
    passes (bridge.model.record).
    """

    def __init__(
        self,
        on_event: Callable[[dict[str, Any]], None] | None = None,
        tap: "Tap | None" = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        allow_remote: bool = False,
    ) -> None:
        self._told = (on_event, tap)
        self._address = (host, port, allow_remote)
        self._tasks = Background()
        self._front: Front | None = None
        self._pools: dict[Origin, Pool] = {}
        self._accounts: dict[str, Account] = {}

    async def __aenter__(self) -> "ModelProxy":
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        try:
            return await self._tasks.__aexit__(kind, error, trace)
        finally:
            if self._front is not None:
                self._front.close()
            for pool in self._pools.values():
                pool.close()

    def route(
        self,
        upstream_url: str,
        *,
        session: str = "",
        options: ModelOptions,
        side_calls: "Sequence[SideCall]" = (),
    ) -> str:
        """The URL that stands for the upstream's for this session, its path and query as they are.

        `side_calls`: the agent's own rules on which of its calls are no turns'. URLs on one server
        share a segment. Raises UsageError for what is no http(s) URL, and where
        no address can be bound.
        """
        from bridge.model.upstream import parse

        upstream = parse(upstream_url)
        root = upstream._replace(path=b"", query=b"")
        slash = b"/" if upstream_url.partition("?")[0].endswith("/") else b""
        mark = b"?" if upstream.query else b""
        tail = upstream.path + slash + mark + upstream.query
        return self._mount(root, session, options, side_calls) + tail.decode()

    def mount(self, upstream_url: str, *, session: str = "", options: ModelOptions) -> str:
        """The URL under which the whole upstream URL is reached: what follows it is joined on."""
        from bridge.model.upstream import parse

        return self._mount(parse(upstream_url), session, options)

    def forget(self, session: str) -> None:
        """Ends a session's routes and its account; exchanges under way go on."""
        if self._front is not None:
            self._front.forget(session)
        self._accounts.pop(session, None)

    def stopped_by(self, session: str) -> str | None:
        """The limit that a call of this session was refused for, by its name in ModelLimits."""
        account = self._accounts.get(session)
        return None if account is None else account.stopped_by

    def turn_began(self, session: str) -> None:
        """What the session calls from now on belongs to a turn."""
        if (account := self._accounts.get(session)) is not None:
            account.generations.turn_began()

    def turn_ended(self, session: str) -> "ModelTurn | None":
        """What its calls since then came to; None for a session that has no route here."""
        account = self._accounts.get(session)
        return None if account is None else account.generations.turn_ended()

    def _mount(
        self,
        upstream: "Upstream",
        session: str,
        options: ModelOptions,
        side_calls: "Sequence[SideCall]" = (),
    ) -> str:
        # HTTP is loaded with the first route: an agent without a model URL does not pay for it.
        from bridge.io.forward import forward_for
        from bridge.io.httppool import Pool
        from bridge.model.front import Front
        from bridge.model.ledger import Account
        from bridge.model.record import Observers
        from bridge.model.relay import Route

        if self._front is None:
            self._front = Front(Observers(*self._told), *self._address)
            self._tasks.start(self._front.serve)
        pool = self._pools.get(upstream.origin)
        if pool is None:
            forward = forward_for(upstream.origin, os.environ)
            pool = self._pools[upstream.origin] = Pool(upstream.origin, forward=forward)
        account = self._accounts.setdefault(session, Account())
        segment = self._front.add(Route(upstream, session, options, pool, account, side_calls))
        return f"{self._front.url}/{segment}"
