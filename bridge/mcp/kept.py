"""A stdio server's one process for all its calls, where `keep_alive` asks for that.

Owns: the process and who waits for which answer. Rules: started at the first call, and anew when
it has died; what cannot be told to belong to one call goes to none; the server is told of no
ability to be asked, since there is no telling whom it would ask. Used by `bridge.mcp.server`.
"""

from collections import deque

import anyio
from anyio.abc import TaskGroup

from bridge.io.family import Family
from bridge.mcp import eras, messages
from bridge.mcp.channel import Fault, Outgoing, Sink, helpers, nobody, plain_id
from bridge.mcp.eras import Era
from bridge.mcp.messages import Answer
from bridge.mcp.session import About, Deaf, Session, WrongEra
from bridge.mcp.settings import Upstream
from bridge.mcp.stdio_channel import StdioChannel, spawned
from bridge.wire import jsonrpc
from bridge.wire.jsonrpc import Notification, Request, Response


class Kept:
    """The process, while there is one."""

    def __init__(self, upstream: Upstream, family: Family, tasks: TaskGroup) -> None:
        self._upstream, self._family, self._tasks = upstream, family, tasks
        self._lock = anyio.Lock()
        self._live: Live | None = None

    async def live(self) -> "Live":
        """The process that runs, or a new one; raises Fault."""
        async with self._lock:
            if self._live is None or self._live.ended:
                self._live = Live()
                self._tasks.start_soon(self._live.run, self._upstream, self._family)
            await self._live.opened.wait()
            if self._live.failure is not None:
                raise self._live.failure
            return self._live

    def close(self) -> None:
        """Ends the process."""
        if self._live is not None:
            self._live.scope.cancel()


class Live:
    """One process. `about` is what it said of itself when it was `opened`."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.opened = anyio.Event()
        self.failure: Fault | None = None
        self.about: About | None = None
        self._channel: StdioChannel | None = None
        self._calls: dict[bytes, _Call] = {}

    @property
    def ended(self) -> bool:
        return self.opened.is_set() and (self._channel is None or self._channel.ended)

    async def run(self, upstream: Upstream, family: Family) -> None:
        """From start to end; whoever waits for an answer then learns why none will come."""
        try:
            with self.scope:
                async with spawned(upstream, family, self._route) as channel:
                    self.about = await self._opened(channel, upstream.policy.timeout)
                    self._channel = channel
                    self.opened.set()
                    await self._read(channel)
        except Fault as fault:
            self.failure = fault
        finally:
            self._channel = None
            self.opened.set()
            for call in self._calls.values():
                call.put(None)

    async def _opened(self, channel: StdioChannel, seconds: float) -> About:
        """As `_handshake`; whoever has waited in vain for this process gets another one."""
        try:
            with anyio.fail_after(seconds):
                return await _handshake(channel)
        except TimeoutError:
            raise Fault("opening", f"the server did not open in {seconds:g} s") from None

    async def _read(self, channel: StdioChannel) -> None:
        while (message := await channel.read(nobody())) is not None:
            if isinstance(message, Response):
                if (call := self._calls.get(plain_id(message))) is not None:
                    call.put(message)
            else:
                await self._route(message)
        self.failure = await channel.died(nobody())

    async def _route(self, message: Request | Notification) -> None:
        if isinstance(message, Request):
            answer = messages.result({})
            if message.method != "ping":
                answer = messages.error(jsonrpc.METHOD_NOT_FOUND, "nobody is there to be asked")
            if self._channel is not None:
                await self._channel.send(messages.response(message.id, answer))
            return
        calls = list(self._calls.values())
        if message.method == "notifications/progress":
            token = (messages.members(message.params) or {}).get("progressToken")
            calls = [call for call in calls if token is not None and call.key == bytes(token)]
        if len(calls) == 1 or (calls and message.method.endswith("/list_changed")):
            calls[0].put(message)

    # -- for calls ------------------------------------------------------------------------------

    def begin(self, request: Outgoing) -> "_Call":
        """Sends a call; raises Fault."""
        if self._channel is None or self._channel.ended:
            raise request.fault("the server has ended")
        call = _Call(b"%d" % request.id)
        self._calls[call.key] = call
        self._channel.write(request)
        return call

    def end(self, call: "_Call") -> None:
        self._calls.pop(call.key, None)

    def post(self, message: bytes) -> None:
        if self._channel is not None:
            self._channel.post(message)

    def fault(self, request: Outgoing) -> Fault:
        """Why no answer came. Whose answer was over the ceiling cannot be told: none is asked for
        again."""
        if self.failure is not None and self.failure.failure.kind == "rejected":
            return Fault("rejected", str(self.failure))
        return request.fault("the server has ended" if self.failure is None else str(self.failure))


class _Call:
    """What has come for one call and has not been taken: messages in order, None for the end."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self._queue: deque[Notification | Response | None] = deque()
        self._news = anyio.Event()

    def put(self, message: Notification | Response | None) -> None:
        self._queue.append(message)
        self._news.set()

    async def get(self) -> Notification | Response | None:
        while not self._queue:
            self._news = anyio.Event()
            await self._news.wait()
        return self._queue.popleft()


class KeptChannel:
    """The process as one call's channel."""

    cancels_by_closing = False
    has_own_stream = False
    version: str | None = None

    def __init__(self, live: Live, sink: Sink) -> None:
        self._live = live
        self._sink = sink

    async def exchange(self, request: Outgoing) -> Answer:
        call = self._live.begin(request)
        try:
            while (message := await call.get()) is not None:
                if isinstance(message, Response):
                    return request.answer_in(message)
                await self._sink(message)
        finally:
            self._live.end(call)
        raise self._live.fault(request)

    async def send(self, message: bytes) -> None:
        self._live.post(message)

    async def listen(self, ready: object) -> None:
        # What belongs to no call comes to whichever call there is.
        await anyio.sleep_forever()

    async def end(self) -> None:
        return


async def _handshake(channel: StdioChannel) -> About:
    """In whichever era the server speaks; raises Fault."""
    # As every server does: the legacy one is asked for first (`Server.first_era`).
    order: tuple[Era, ...] = ("legacy", "modern")
    first: Fault | None = None
    async with helpers() as tasks:
        for era in order:
            session = Session(channel, eras.ourselves(era), era, Deaf(), tasks)
            try:
                return await (session.open_legacy() if era == "legacy" else session.open_modern())
            except WrongEra as wrong:
                first = first or wrong.fault
    raise first or Fault("opening", "the server speaks no era that is known here")
