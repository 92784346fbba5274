"""A growing trace as a page on loopback: `trace html --serve`.

Owns: the server and what it has read of the file. Rules: it listens on 127.0.0.1 only, under a
path nobody can guess, and answers to its own name only; the page asks for what is new, rows and
findings, and gets it as soon as it is there, secrets masked. Called by `bridge.cli.trace`.
"""

import secrets
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs

import anyio
import anyio.to_thread

from bridge.errors import UsageError
from bridge.io import httpserver
from bridge.io.exchange import Exchange
from bridge.trace import html, reader
from bridge.trace.check.checker import Checker
from bridge.trace.check.finding import Finding
from bridge.trace.export.masking import Masking
from bridge.trace.reader import Event, Item
from bridge.trace.timeline import Entry, Timeline
from bridge.wire import codec
from protocol_schemas.trace import Head

_WAIT = 10.0
_PAUSE = 0.1
"""For what comes together to go together."""
_HTML = [(b"Content-Type", b"text/html; charset=utf-8"), (b"Cache-Control", b"no-store")]
_JSON = [(b"Content-Type", b"application/json"), (b"Cache-Control", b"no-store")]


class Live:
    """One trace file, as far as it has been read."""

    def __init__(self, path: str, masking: Masking) -> None:
        self._path = path
        self._masking = masking
        self._entries: list[Entry] = []
        self._places: list[html.Place] = []
        self._place = html.Places()
        self._timeline = Timeline()
        self._checker = Checker()
        self._findings: list[Finding] = []
        self._news = anyio.Event()
        self.token = secrets.token_urlsafe(16)
        self.authority = b""
        """The server's own name, by which it must be asked."""

    async def read(self, begun: anyio.Event) -> None:
        """Reads the file to the recording's end; sets `begun` when it has seen what is there.
        Raises UsageError."""
        items = reader.follow(self._path)
        while (batch := await anyio.to_thread.run_sync(_batch, items)) is not None:
            for item in batch:
                self._take(item)
            if batch:
                self._tell(self._checker.findings)
            begun.set()
        self._tell(self._checker.result())

    def _take(self, item: Item) -> None:
        if isinstance(item, Event):
            self._masking.learn(item)
            entry = self._timeline.add(self._masking.masked(item))
            self._entries.append(entry)
            self._places.append(self._place.of(entry))
            self._checker.see(entry)
            return
        if isinstance(item, Head):
            self._timeline.restart()
        self._checker.see(item)

    def _tell(self, findings: list[Finding]) -> None:
        # Those that are known keep their places: the page has them already.
        known = set(map(id, self._findings))
        self._findings += [finding for finding in findings if id(finding) not in known]
        self._news.set()
        self._news = anyio.Event()

    async def handle(self, exchange: Exchange) -> None:
        """Answers one request."""
        if exchange.header(b"host") != self.authority:
            await exchange.respond(421, _JSON, b"{}")
        elif exchange.path == f"/{self.token}/":
            title = f"{self._path.rpartition('/')[2]} (live)"
            await exchange.respond(200, _HTML, html.page(title, [], [], live=True))
        elif exchange.path == f"/{self.token}/rows":
            query = parse_qs(exchange.target.partition(b"?")[2].decode("latin-1"))
            after, findings = (_number(query, name) for name in ("after", "findings"))
            await exchange.respond(200, _JSON, await self._rows(after, findings))
        else:
            await exchange.respond(404, _JSON, b"{}")

    async def _rows(self, after: int, findings: int) -> bytes:
        """What came after so many events and findings; waits a while if there is nothing."""
        with anyio.move_on_after(_WAIT):
            while len(self._entries) <= after and len(self._findings) <= findings:
                await self._news.wait()
        await anyio.sleep(_PAUSE)
        # Of a line that the page is not given now, a finding would have no place.
        rows = self._entries[after:], self._places[after:]
        return codec.encode(html.data(*rows, self._findings[findings:]))


def _number(query: dict[str, list[str]], name: str) -> int:
    text = query.get(name, ["0"])[0]
    return int(text) if text.isdecimal() else 0


def _batch(items: Iterator[Item | None]) -> list[Item] | None:
    """The items there are; None at the recording's end."""
    batch: list[Item] = []
    for item in items:
        if item is None:
            return batch
        batch.append(item)
        if len(batch) >= 5000:
            return batch
    return batch or None


async def serve(live: Live, ready: Callable[[str], object]) -> None:
    """Serves until cancelled, or until the file turns out to be no trace: raises UsageError."""
    wrong: UsageError | None = None
    async with httpserver.listen() as server, anyio.create_task_group() as tasks:
        live.authority = f"{server.host}:{server.port}".encode()
        begun = anyio.Event()

        async def read() -> None:
            nonlocal wrong
            try:
                await live.read(begun)
            except UsageError as error:
                wrong = error
                tasks.cancel_scope.cancel()

        tasks.start_soon(read)
        await begun.wait()
        ready(f"http://{server.host}:{server.port}/{live.token}/")
        await server.serve(live.handle)
    if wrong is not None:
        raise wrong
