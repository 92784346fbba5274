"""A growing trace as a page on loopback: `trace html --serve`.

Owns: the server and what it has read of the file. Rules: it listens on 127.0.0.1 only, under a
path nobody can guess, and answers to its own name only; the page asks for what is new and gets it
as soon as it is there, secrets masked. Called by `bridge.cli.trace`.
"""

import secrets
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs

import anyio
import anyio.to_thread

from bridge.io import httpserver
from bridge.io.exchange import Exchange
from bridge.trace import html, reader
from bridge.trace.export.masking import Masking
from bridge.trace.reader import Event, Item
from bridge.trace.timeline import Entry, Timeline
from bridge.wire import codec
from protocol_schemas.trace import Head

_WAIT = 10.0
_HTML = [(b"Content-Type", b"text/html; charset=utf-8"), (b"Cache-Control", b"no-store")]
_JSON = [(b"Content-Type", b"application/json"), (b"Cache-Control", b"no-store")]


class Live:
    """One trace file, as far as it has been read."""

    def __init__(self, path: str, masking: Masking) -> None:
        self._path = path
        self._masking = masking
        self._entries: list[Entry] = []
        self._timeline = Timeline()
        self._news = anyio.Event()
        self.token = secrets.token_urlsafe(16)
        self.authority = b""
        """The server's own name, by which it must be asked."""

    async def read(self) -> None:
        """Reads the file to the recording's end. Raises UsageError."""
        items = reader.follow(self._path)
        while (batch := await anyio.to_thread.run_sync(_batch, items)) is not None:
            for item in batch:
                self._take(item)
            if batch:
                self._news.set()
                self._news = anyio.Event()

    def _take(self, item: Item) -> None:
        if isinstance(item, Event):
            self._masking.learn(item)
            self._entries.append(self._timeline.add(self._masking.masked(item)))
        elif isinstance(item, Head):
            self._timeline.restart()

    async def handle(self, exchange: Exchange) -> None:
        """Answers one request."""
        if exchange.header(b"host") != self.authority:
            await exchange.respond(421, _JSON, b"{}")
        elif exchange.path == f"/{self.token}/":
            title = f"{self._path.rpartition('/')[2]} (live)"
            await exchange.respond(200, _HTML, html.page(title, [], [], live=True))
        elif exchange.path == f"/{self.token}/rows":
            query = parse_qs(exchange.target.partition(b"?")[2].decode("latin-1"))
            await exchange.respond(200, _JSON, await self._rows(int(query.get("after", ["0"])[0])))
        else:
            await exchange.respond(404, _JSON, b"{}")

    async def _rows(self, after: int) -> bytes:
        """What came after so many events; waits a while if there is nothing."""
        with anyio.move_on_after(_WAIT):
            while len(self._entries) <= after:
                await self._news.wait()
        return codec.encode(html.data(self._entries[after:], [], whole=self._entries))


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
    """Serves until cancelled. Raises UsageError."""
    async with httpserver.listen() as server, anyio.create_task_group() as tasks:
        live.authority = f"{server.host}:{server.port}".encode()
        tasks.start_soon(live.read)
        ready(f"http://{server.host}:{server.port}/{live.token}/")
        await server.serve(live.handle)
