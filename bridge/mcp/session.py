"""One MCP session with a server: opened in its era, used by one attempt, ended.

Owns: the handshake of each era and what it tells of the server. Rule: a session is opened, used
and ended in one task; what the server asks meanwhile is answered beside, without holding up what
it sends. Made by `bridge.mcp.server`, used by attempts and listings.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import anyio
from anyio.abc import TaskGroup

from bridge.mcp import eras, messages
from bridge.mcp.channel import Channel, Fault, Outgoing
from bridge.mcp.eras import Client, Era
from bridge.mcp.messages import Answer, Members
from bridge.wire import codec, jsonrpc
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Notification, Request

_LISTEN_WAIT = 1.0
_PROBE_WAIT = 5.0
_VERSION = re.compile(r"[!-~]+")
"""What a header can carry."""


class About(NamedTuple):
    """What a server says of itself when a session is opened."""

    era: Era
    version: str
    capabilities: Members
    info: Raw | None = None
    instructions: Raw | None = None


class WrongEra(Exception):
    """The server does not speak this era, as far as can be told; `fault`: what it did instead.

    `said` tells whether that is the server's word (a verdict) or only how it looks.
    """

    def __init__(self, fault: Fault, *, said: bool) -> None:
        super().__init__(str(fault))
        self.fault = fault
        self.said = said


class Listener(Protocol):
    """Who is told what a server sends beside its answers, in order."""

    async def told(self, notification: Notification) -> None: ...

    async def asked(self, request: Request) -> Answer:
        """The caller's answer to a server's request; takes as long as the caller takes."""
        ...


class Deaf:
    """The listener of a session in which nobody in particular calls."""

    async def told(self, notification: Notification) -> None:
        return

    async def asked(self, request: Request) -> Answer:
        return messages.error(jsonrpc.METHOD_NOT_FOUND, "nobody is there to be asked")


class Session:
    """An open session. `about` is None where a modern server was not asked."""

    def __init__(
        self, channel: Channel, client: Client, era: Era, listener: Listener, tasks: TaskGroup
    ) -> None:
        self.channel = channel
        self.client = client
        self.era: Era = era
        self.about: About | None = None
        self._listener = listener
        self._tasks = tasks
        self._asked: dict[bytes, anyio.CancelScope] = {}
        self._call: Outgoing | None = None
        self._given_up = False

    def stamp(
        self,
        request: Outgoing,
        params: Mapping[str, Any],
        *,
        progress: bool = False,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """Gives the request its parameters, stamped for the era.

        `progress`: have the server tell how it gets on, under the request's id as the token;
        `more`: further members of `_meta`.
        """
        token = request.id if progress else None
        request.params = eras.outgoing(params, self.client, self.era, token=token, more=more)

    async def call(self, request: Outgoing) -> Answer:
        """Sends the call and waits for its answer; raises Fault."""
        self._call = request
        try:
            return await self.channel.exchange(request)
        except anyio.get_cancelled_exc_class():
            self._given_up = request.written
            raise

    async def ask(self, method: str, params: Mapping[str, Any]) -> Answer:
        """Sends a request whose execution does not matter (a list's page); raises Fault."""
        stamped = eras.outgoing(params, self.client, self.era)
        headers = [("Mcp-Method", method)] if self.era == "modern" else []
        return await self.channel.exchange(Outgoing(method, stamped, headers=headers))

    @property
    def written(self) -> bool:
        """Whether the call has been written: the server may be executing it."""
        return self._call is not None and self._call.written

    async def end(self) -> None:
        """Takes leave: of a call that was given up, and of the server. Never raises Fault."""
        if self._given_up and not (self.era == "modern" and self.channel.cancels_by_closing):
            assert self._call is not None
            params = {"requestId": self._call.id, "reason": "nobody waits for it any more"}
            with suppress(Fault):
                await self.channel.send(messages.notification("notifications/cancelled", params))
        await self.channel.end()

    async def sink(self, message: Request | Notification) -> None:
        """What the channel hands over: requests are answered in tasks of their own."""
        if isinstance(message, Request):
            self._tasks.start_soon(self._answer, message)
        elif message.method == "notifications/cancelled" and self._asked:
            fields = messages.members(message.params) or {}
            scope = self._asked.get(bytes(fields.get("requestId", b"")))
            if scope is not None:
                scope.cancel()
        else:
            await self._listener.told(message)

    async def _answer(self, request: Request) -> None:
        with anyio.CancelScope() as scope:
            self._asked[request.id] = scope
            try:
                if request.method == "ping":
                    answer = messages.result({})
                else:
                    answer = await self._listener.asked(request)
                await self.channel.send(messages.response(request.id, answer))
            except Fault:
                # The call's own exchange meets the same broken connection, and reports it.
                return
            finally:
                self._asked.pop(request.id, None)

    # -- opening --------------------------------------------------------------------------------

    async def open_legacy(self) -> About:
        """initialize and what belongs to it; raises Fault or WrongEra."""
        request = Outgoing("initialize", eras.initialize(self.client))
        try:
            answer = await self.channel.exchange(request)
        except Fault as fault:
            if fault.refuses:
                raise WrongEra(fault, said=False) from None
            raise
        if answer.result is None:
            raise WrongEra(_refused("initialize", answer), said=False)
        about = _about("legacy", answer.result)
        if about is None:
            raise Fault("opening", "the answer to initialize names no protocolVersion")
        self.about = about
        self.channel.version = about.version
        await self.channel.send(messages.notification("notifications/initialized"))
        return about

    async def open_modern(self) -> About:
        """server/discover; raises Fault or WrongEra."""
        self.channel.version = eras.MODERN
        answer = await self._discover()
        if answer.error is not None and eras.offers_modern(answer):
            # It refused our version and names it as one it speaks: it is to be asked again.
            answer = await self._discover()
        if answer.result is None:
            raise WrongEra(_refused("server/discover", answer), said=True)
        about = _about("modern", answer.result)
        if about is None:
            fault = Fault("opening", f"server/discover does not offer {eras.MODERN}")
            raise WrongEra(fault, said=True)
        self.about = about
        return about

    async def _discover(self) -> Answer:
        method = "server/discover"
        params = eras.outgoing({}, self.client, "modern")
        request = Outgoing(method, params, headers=[("Mcp-Method", method)])
        try:
            with anyio.fail_after(_PROBE_WAIT):
                return await self.channel.exchange(request)
        except TimeoutError:
            fault = Fault("opening", f"{method} was not answered in {_PROBE_WAIT:g} s")
            raise WrongEra(fault, said=False) from None
        except Fault as fault:
            if fault.refuses:
                raise WrongEra(fault, said=True) from None
            if fault.failure.kind == "opening":
                raise WrongEra(fault, said=False) from None
            raise

    async def set_log_level(self, level: str) -> None:
        """Asks a legacy server for log messages, where it has any; its refusal is no failure."""
        if self.about is not None and "logging" in self.about.capabilities:
            await self.channel.exchange(Outgoing("logging/setLevel", {"level": level}))

    async def listen(self) -> None:
        """Opens the stream for what belongs to no request, and waits a moment for it to stand."""
        ready = anyio.Event()

        async def listen() -> None:
            try:
                await self.channel.listen(ready.set)
            except Fault:
                return
            finally:
                ready.set()

        self._tasks.start_soon(listen)
        with anyio.move_on_after(_LISTEN_WAIT):
            await ready.wait()


def _refused(method: str, answer: Answer) -> Fault:
    """An error in place of what opens a session."""
    text = bytes(answer.error or b"").decode(errors="replace")
    return Fault("opening", f"{method} was refused: {text[:500]}")


def _about(era: Era, result: Raw) -> About | None:
    """What initialize or discover says; None if it is not what it should be."""
    fields = messages.members(result)
    if fields is None:
        return None
    capabilities = messages.members(fields.get("capabilities", Raw(b"{}"))) or {}
    instructions = fields.get("instructions")
    if era == "legacy":
        version = codec.decode(fields["protocolVersion"]) if "protocolVersion" in fields else None
        if not isinstance(version, str) or not _VERSION.fullmatch(version):
            return None
        return About(era, version, capabilities, fields.get("serverInfo"), instructions)
    versions = codec.decode(fields["supportedVersions"]) if "supportedVersions" in fields else None
    if not isinstance(versions, list) or eras.MODERN not in versions:
        return None
    meta = messages.members(fields["_meta"]) if "_meta" in fields else None
    info = (meta or {}).get(eras.SERVER_INFO_KEY, fields.get("serverInfo"))
    return About(era, eras.MODERN, capabilities, info, instructions)
