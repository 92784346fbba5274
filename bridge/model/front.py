"""The model proxy's listening side: which route a request is for, and who may make one at all.

Rule: Host must name the loopback (421), the first path segment a route (404); everything else is
the relay's. Made by bridge.model.service with its first route.
"""

from collections.abc import Awaitable

from bridge.io.exchange import Exchange
from bridge.io.httpserver import Server
from bridge.io.sockets import bind
from bridge.model import answers
from bridge.model.record import Observers
from bridge.model.relay import Aim, Relay, Route, aim
from bridge.wire.http_guard import is_local, new_segment, split

_REMEMBERED = 256


class Front:
    """A bound address and the routes under it. Raises UsageError where it cannot listen."""

    def __init__(self, observers: Observers, host: str, port: int, allow_remote: bool) -> None:
        self._server = Server(bind(host, port, allow_remote=allow_remote))
        self._observers = observers
        self._any_host = allow_remote
        self._routes: dict[str, Route] = {}
        self._aims: dict[tuple[str, bytes], Aim] = {}
        self._exchanges = 0

    @property
    def url(self) -> str:
        """The address, without a route."""
        return f"http://{self._server.authority}"

    def add(self, route: Route) -> str:
        """The segment of a route; of one that is there already the same."""
        for segment, known in self._routes.items():
            if known.terms == route.terms:
                return segment
        segment = new_segment()
        self._routes[segment] = route
        return segment

    def forget(self, session: str) -> None:
        """Removes a session's routes; what is under way goes on."""
        for segment in [key for key, route in self._routes.items() if route.session == session]:
            del self._routes[segment]
        self._aims.clear()

    async def serve(self) -> None:
        """Serves until cancelled."""
        await self._server.serve(self._handle, refuse=answers.refusal)

    def close(self) -> None:
        """Stops listening."""
        self._server.close()

    def _handle(self, exchange: Exchange) -> Awaitable[None]:
        if not self._any_host and not is_local(exchange.header(b"host")):
            return self._refuse(exchange, "misdirected", "this proxy serves the loopback alone")
        found = self._aims.get((exchange.method, exchange.target)) or self._aim(exchange)
        if found is None:
            words = "no such route: the first segment of the URL's path is not known"
            return self._refuse(exchange, "not_found", words)
        self._exchanges += 1
        return Relay(found, exchange, self._observers, self._exchanges).run()

    def _aim(self, exchange: Exchange) -> Aim | None:
        """Where a target leads; agents ask for the same few again and again."""
        segment, rest = split(exchange.target)
        route = self._routes.get(segment)
        if route is None:
            return None
        if len(self._aims) >= _REMEMBERED:
            self._aims.clear()
        found = aim(route, exchange.method, rest)
        self._aims[exchange.method, exchange.target] = found
        return found

    async def _refuse(self, exchange: Exchange, code: answers.Code, words: str) -> None:
        body = answers.error(code, words, anthropic=answers.is_anthropic(exchange.target))
        await exchange.respond(answers.STATUSES[code], [answers.JSON_TYPE], body)
