"""`bridge.client` for scripts without async: the same calls, blocking.

    with Bridge.spawn() as bridge, bridge.session(command=["node", "agent.js"]) as session:
        print(session.prompt("hello").reply)

Rule: nothing is done here but waiting; the work is the async client's, on a loop in a thread.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from bridge import client
from bridge.client import Event, Message, Turn


class Session:
    """A session, blocking. Made by `Bridge.session`."""

    def __init__(self, portal: BlockingPortal, session: client.Session) -> None:
        self._portal = portal
        self._session = session
        self.name = session.name
        self.opened = session.opened

    def prompt(self, *contents: Message, **config: Any) -> Turn:
        """One turn; raises TurnFailed."""
        return self._portal.call(lambda: self._session.prompt(*contents, **config))

    def steer(self, message: Message, *, message_id: str | None = None) -> dict[str, Any]:
        return self._portal.call(lambda: self._session.steer(message, message_id=message_id))

    def send(
        self, message: Message, *, mode: str = "queue", message_id: str | None = None
    ) -> dict[str, Any]:
        return self._portal.call(
            lambda: self._session.send(message, mode=mode, message_id=message_id)
        )

    def cancel(self) -> None:
        self._portal.call(self._session.cancel)

    def request(self, operation: str, **fields: Any) -> Any:
        return self._portal.call(lambda: self._session.request(operation, **fields))

    def events(self) -> Iterator[Event]:
        """The events from now on; blocks between them, ends with the session."""
        events = self._portal.call(_subscribe, self._session)
        source = aiter(events)
        return self._events(source)

    def _events(self, source: Any) -> Iterator[Event]:
        while True:
            try:
                yield self._portal.call(source.__anext__)
            except StopAsyncIteration:
                return

    def close(self) -> dict[str, Any]:
        return self._portal.call(self._session.close)


async def _subscribe(session: client.Session) -> client.Events:
    return session.events()


class Bridge:
    """A running daemon, blocking. Made by `spawn`."""

    def __init__(self, portal: BlockingPortal, bridge: client.Bridge) -> None:
        self._portal = portal
        self._bridge = bridge
        self.hello = bridge.hello

    @classmethod
    @contextmanager
    def spawn(cls, *, backend: str = "asyncio", **options: Any) -> Generator["Bridge"]:
        """Starts a daemon (options: see `bridge.client.Bridge.spawn`)."""
        with (
            start_blocking_portal(backend) as portal,
            portal.wrap_async_context_manager(client.Bridge.spawn(**options)) as bridge,
        ):
            yield cls(portal, bridge)

    @contextmanager
    def session(
        self, name: str = "", *, command: Sequence[str] = (), **config: Any
    ) -> Generator[Session]:
        """Starts an agent and makes a session with it."""
        make: Callable[..., Any] = self._bridge.session
        with self._portal.wrap_async_context_manager(
            make(name, command=command, **config)
        ) as session:
            yield Session(self._portal, session)

    def request(self, operation: str, **fields: Any) -> Any:
        return self._portal.call(lambda: self._bridge.request(operation, **fields))
