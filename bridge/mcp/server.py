"""One upstream server: how it is reached, what is known of it, and sessions with it.

Owns: the connections, the verdict on its eras, the bound on parallel attempts. Rule: nothing of
one server (headers, environment, cookies, ids) reaches another. Made by `bridge.mcp.hub`.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from bridge.io.family import Family
from bridge.mcp import eras
from bridge.mcp.channel import Channel, Fault, Sink, helpers
from bridge.mcp.eras import Client, Era, Verdicts
from bridge.mcp.messages import Answer
from bridge.mcp.session import About, Listener, Session, WrongEra
from bridge.mcp.settings import Upstream
from bridge.wire import codec, jsonrpc
from bridge.wire.jsonrpc import Notification, Request

if TYPE_CHECKING:
    from bridge.mcp.origin import Heads

LEAVE_TAKING = 2.0
_DOUBT = 60.0
_SECRET = 6


class Server:
    """`abouts` are what the server last said of itself, in each era."""

    def __init__(
        self, upstream: Upstream, family: Family, tasks: TaskGroup, heads: "Heads | None" = None
    ) -> None:
        self.upstream = upstream
        self.name = upstream.name
        self.policy = upstream.policy
        self.verdicts = Verdicts()
        self.abouts: dict[Era, About] = {}
        self.slots = anyio.Semaphore(upstream.policy.max_parallel)
        self._family = family
        self._doubtful_until = 0.0
        self._secrets = _secrets(upstream)
        self._transport = upstream.transport
        self._origin = None
        self._kept = None
        if upstream.policy.keep_alive and upstream.transport == "stdio":
            from bridge.mcp.kept import Kept

            self._kept = Kept(upstream, family, tasks)
        if upstream.transport == "sse":
            # It is older than the modern era.
            self.verdicts.known["modern"] = False
        if upstream.transport != "stdio":
            # Loaded here: a session with stdio servers alone needs no HTTP client.
            from bridge.mcp.origin import Origin

            self._origin = Origin(upstream, heads)

    def close(self) -> None:
        """Closes what is kept: connections, a process."""
        if self._kept is not None:
            self._kept.close()
        if self._origin is not None:
            self._origin.close()

    def spoken(self, preferred: Era) -> Era:
        """The era in which it serves callers of an era, as far as is known."""
        return self.verdicts.order(preferred)[0]

    @property
    def first_era(self) -> Era:
        """The one to meet it in. A stdio server that does not know server/discover may fall
        silent, and its process with it; over HTTP asking is the usual way, and bounded."""
        return "legacy" if self.upstream.transport == "stdio" else "modern"

    def about(self, era: Era) -> About | None:
        """What it says of itself to callers of an era: in that era, else in the other one."""
        return self.abouts.get(era) or next(iter(self.abouts.values()), None)

    def masked(self, text: str) -> str:
        """The text without what this server's headers and environment keep secret."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def doubt(self, fault: Fault) -> None:
        """A server that refuses what it used to speak may have been replaced by another one: which
        eras it speaks is found out anew."""
        if fault.refuses:
            self._meet_anew()

    def _meet_anew(self) -> None:
        if self._transport == "http":
            self.verdicts = Verdicts()

    def check_refusal(self, answer: Answer) -> None:
        """Raises Fault for what a modern server refuses before it executes anything."""
        if answer.error is None:
            return
        text = bytes(answer.error).decode(errors="replace")[:300]
        if answer.code == eras.HEADER_MISMATCH:
            raise Fault("headers", f"the server's tool has changed: {text}")
        if answer.code == jsonrpc.UNSUPPORTED_VERSION:
            if not eras.offers_modern(answer):
                self.verdicts.known["modern"] = False
            raise Fault("opening", f"the server refuses {eras.MODERN}: {text}")

    @asynccontextmanager
    async def session(
        self,
        client: Client,
        listener: Listener,
        *,
        describe: bool = False,
        quiet: bool = False,
    ) -> AsyncGenerator[Session]:
        """A fresh session, in the caller's era where the server can, ended when left.

        `describe`: have the server say what it is, where the era does not require that; `quiet`:
        what it says beside its answers is of no interest. Raises Fault. Taking leave is shielded
        and bounded.
        """
        if self._kept is not None:
            async with self._in_kept(client, listener) as session:
                yield session
            return
        first: Fault | None = None
        order = self._order(client.era)
        for era in order:
            async with self._attempted(client, listener, era) as session:
                try:
                    await self._open(session, describe=describe, quiet=quiet)
                except WrongEra as wrong:
                    if self.verdicts.known[era]:
                        self._meet_anew()
                    if wrong.said:
                        self.verdicts.known[era] = False
                    elif era == "modern":
                        self._doubtful_until = anyio.current_time() + _DOUBT
                    first = first or wrong.fault
                    continue
                if first is not None and era == "modern":
                    # It refused initialize and speaks this: the refusal was its verdict.
                    self.verdicts.known["legacy"] = False
                yield session
            return
        assert first is not None
        if not self._may_be_old(first):
            raise first
        async with self._old_session(client, listener, first) as session:
            yield session

    def _may_be_old(self, fault: Fault) -> bool:
        """Whether the server may be of the transport before, its kind not having been said."""
        unknown = not any(self.verdicts.known.values())
        guessed = self.upstream.guessed and self._transport == "http"
        return guessed and unknown and fault.failure.status in (404, 405)

    @asynccontextmanager
    async def _old_session(
        self, client: Client, listener: Listener, first: Fault
    ) -> AsyncGenerator[Session]:
        """A session over that transport, which is kept to if it opens; else raises `first`."""
        self._transport = "sse"
        try:
            async with self._attempted(client, listener, "legacy") as session:
                await self._open(session, describe=False, quiet=True)
                self.verdicts.known["modern"] = False
                yield session
        except (Fault, WrongEra):
            if not self.verdicts.known["legacy"]:
                self._transport = "http"
                raise first from None
            raise

    def _order(self, preferred: Era) -> list[Era]:
        """The eras to try. A modern era in doubt (no verdict, no answer) is left for a while."""
        doubtful = anyio.current_time() < self._doubtful_until
        if preferred == "modern" and doubtful and self.verdicts.known["legacy"]:
            return ["legacy"]
        return self.verdicts.order(preferred)

    @asynccontextmanager
    async def _in_kept(self, client: Client, listener: Listener) -> AsyncGenerator[Session]:
        """A call's share of the process that is kept."""
        from bridge.mcp.kept import KeptChannel

        assert self._kept is not None
        live = await self._kept.live()
        assert live.about is not None
        era = live.about.era
        self.abouts[era], self.verdicts.known[era] = live.about, True

        async def sink(message: Request | Notification) -> None:
            await session.sink(message)

        async with helpers() as tasks:
            session = Session(KeptChannel(live, sink), client, era, listener, tasks)
            try:
                yield session
            finally:
                await session.end()

    @asynccontextmanager
    async def _attempted(
        self, client: Client, listener: Listener, era: Era
    ) -> AsyncGenerator[Session]:
        async def sink(message: Request | Notification) -> None:
            await session.sink(message)

        async with helpers() as tasks, self._channel(sink, tasks) as channel:
            session = Session(channel, client, era, listener, tasks)
            try:
                yield session
            finally:
                with anyio.CancelScope(shield=True) as scope:
                    scope.deadline = anyio.current_time() + LEAVE_TAKING
                    await session.end()

    def _channel(self, sink: Sink, tasks: TaskGroup) -> AbstractAsyncContextManager[Channel]:
        ceiling = self.policy.max_result_bytes
        if self._origin is None:
            from bridge.mcp.stdio_channel import spawned

            return spawned(self.upstream, self._family, sink)
        if self._transport == "sse":
            from bridge.mcp.sse_channel import connected

            return connected(self._origin, ceiling, sink, tasks)
        from bridge.mcp.http_channel import HttpChannel

        return nullcontext(HttpChannel(self._origin, ceiling, sink, tasks))

    async def _open(self, session: Session, *, describe: bool, quiet: bool) -> None:
        """The handshake, as far as the era and what is known ask for one."""
        if session.era == "modern":
            session.channel.version = eras.MODERN
            if describe or not self.verdicts.known["modern"]:
                self.abouts["modern"] = await session.open_modern()
                self.verdicts.known["modern"] = True
            return
        about = self.abouts["legacy"] = await session.open_legacy()
        self.verdicts.known["legacy"] = True
        client = session.client
        if client.log_level is not None:
            await session.set_log_level(client.log_level)
        if quiet or not session.channel.has_own_stream:
            return
        if client.can_be_asked or _speaks_up(about):
            await session.listen()


def _speaks_up(about: About) -> bool:
    """Whether the server may say things that belong to no request."""
    if "logging" in about.capabilities:
        return True
    for name in ("tools", "resources", "prompts"):
        fields = codec.mapping(codec.decode(about.capabilities.get(name, codec.Raw(b"{}"))))
        if fields is not None and fields.get("listChanged") is True:
            return True
    return False


def _secrets(upstream: Upstream) -> list[str]:
    """What must not be in any word about the server: whole values and, of `Bearer x`, the x."""
    values = [value for _, value in upstream.headers]
    values += [value for value in upstream.env.values() if value not in os.environ.values()]
    values += [value.rpartition(" ")[2] for value in values]
    return sorted({value for value in values if len(value) >= _SECRET}, key=len, reverse=True)
