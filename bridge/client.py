"""The Python API for hosts: `Bridge` spawns a daemon and speaks its native protocol with it.

    async with Bridge.spawn() as bridge:
        async with bridge.session(command=["node", "agent.js"]) as session:
            turn = await session.prompt("hello")

Owns: the daemon's process and the requests in flight. Rules: works on asyncio and trio; a failed
request raises, with what had come of the turn; leaving a context ends what it started. Touches
nothing of the host's process (no signals, no child reaping). `bridge.client_sync` has the same
without async.
"""

import subprocess
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import Process

from bridge.client_packets import Turn, TurnFailed, error_of, request_body, turn_of
from bridge.errors import BridgeError
from bridge.wire import codec, packets

EVENTS = ("update", "mcp", "model", "stderr", "exit", "turn", "mode", "notice")
"""What a session subscribes to by default; `permission` and `elicitation` must be answered."""
DAEMON = (sys.executable, "-m", "bridge", "stream")
_ENDING = 12.0
"""Seconds for the daemon to end by itself: it answers a shutdown within 10."""
_TERMINATING = 5.0
"""Seconds between SIGTERM and SIGKILL for one that did not: it ends all its agents in 4."""
_NOTICED = 2.0
"""Seconds between the end of one of the daemon's pipes and its exit, at most."""

Message = str | list[dict[str, Any]]
Event = dict[str, Any]


class Events:
    """The events of a session (or of all), from the moment this was made; ends with the session."""

    def __init__(self, wanted: Callable[[Event], bool], forget: Callable[["Events"], None]) -> None:
        self._wanted = wanted
        self._forget = forget
        self._untaken = deque[Event]()
        self._changed = anyio.Event()
        self._closed = False

    def offer(self, event: Event) -> None:
        if self._wanted(event):
            self._untaken.append(event)
            self._changed.set()

    def __aiter__(self) -> "Events":
        return self

    async def __anext__(self) -> Event:
        await anyio.lowlevel.checkpoint()
        while not self._untaken:
            if self._closed:
                raise StopAsyncIteration
            if self._changed.is_set():
                self._changed = anyio.Event()
            await self._changed.wait()
        return self._untaken.popleft()

    def close(self) -> None:
        """Ends the iteration once what has come is consumed. Idempotent."""
        self._forget(self)
        self._closed = True
        self._changed.set()


class Bridge:
    """A running daemon. Made by `spawn`."""

    def __init__(self, process: Process, on_stderr: Callable[[bytes], None] | None) -> None:
        self._process = process
        self._on_stderr = on_stderr
        self._unsent = deque[bytes]()
        self._more_unsent = anyio.Event()
        self._count = 0
        self._waiting: dict[int, tuple[anyio.Event, list[dict[str, Any]]]] = {}
        self._listeners: set[Events] = set()
        self._ended: str | None = None
        """Why nothing more comes, once that is so."""
        self._over = anyio.Event()
        self._listened = anyio.Event()
        # Whoever is cancelled around a bridge: its orderly end needs the answers.
        self._listening = anyio.CancelScope(shield=True)
        self.hello: dict[str, Any] = {}
        """The daemon's answer to hello: its version, operations, events and limits."""

    @classmethod
    @asynccontextmanager
    async def spawn(
        cls,
        *,
        daemon: Sequence[str] = DAEMON,
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        events: Sequence[str] = EVENTS,
        on_stderr: Callable[[bytes], None] | None = None,
        new_session: bool = False,
    ) -> AsyncGenerator["Bridge"]:
        """Starts a daemon; leaving the context shuts it down, agents included.

        `options`: further arguments (`--record FILE`); `on_stderr` gets the daemon's stderr, which
        is this process's own otherwise; in a `new_session` it does not get the terminal's signals.
        """
        process = await anyio.open_process(
            [*daemon, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if on_stderr else None,
            env=env,
            cwd=cwd,
            start_new_session=new_session,
        )
        bridge = cls(process, on_stderr)
        failure: BaseException | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bridge._listen)
            try:
                bridge.hello = await bridge.request(
                    "hello", protocol=1, client={"name": "bridge.client"}, events=list(events)
                )
                yield bridge
            except BaseException as error:  # noqa: BLE001
                # Raised again outside the group, which would wrap it.
                failure = error
            finally:
                with anyio.CancelScope(shield=True):
                    await bridge._end()
        if failure is not None:
            try:
                raise failure
            finally:
                del failure

    async def request(self, operation: str, **fields: Any) -> Any:
        """Sends any operation and gives its result; raises BridgeError."""
        response = await self._exchange(operation, fields)
        if not response.get("ok"):
            raise error_of(response)
        return response.get("result")

    async def prompt(self, session: str, config: dict[str, Any]) -> Turn:
        """One turn in a named session; raises TurnFailed, or BridgeError if the daemon is gone."""
        response = await self._exchange("prompt", {"session": session, "config": config})
        turn = turn_of(response)
        if not response.get("ok"):
            raise TurnFailed(error_of(response), turn)
        return turn

    @asynccontextmanager
    async def session(
        self, name: str = "", *, command: Sequence[str] = (), **config: Any
    ) -> AsyncGenerator["Session"]:
        """Starts an agent, by its `command` or by its profile's name (`agent="codex"`), and makes a
        session with it; `config` is that of `open`."""
        opening = {"command": list(command), **config}
        try:
            result = await self.request("open", session=name, config=opening)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await Session(self, name, {}).close()
            raise
        session = Session(self, name, result)
        try:
            yield session
        finally:
            with anyio.CancelScope(shield=True):
                await session.close()

    def events(self, session: str | None = None) -> Events:
        """The events of one session, or of all, from now on."""

        def wanted(event: Event) -> bool:
            return session is None or event.get("session") == session

        events = Events(wanted, self._listeners.discard)
        if self._ended is None:
            self._listeners.add(events)
        else:
            events.close()
        return events

    async def _exchange(self, operation: str, fields: dict[str, Any]) -> dict[str, Any]:
        if self._ended is not None:
            raise BridgeError(self._ended, code="internal")
        self._count += 1
        ident = self._count
        body = request_body(operation, {"id": ident, "operation": operation, **fields})
        answered, answer = anyio.Event(), list[dict[str, Any]]()
        self._waiting[ident] = answered, answer
        # Written by a task of its own: a packet that is cut short would put the stream out of step,
        # and one that the daemon does not take must not hold who asked.
        self._unsent.append(b"".join(packets.frame(body, prefixed=True)))
        self._more_unsent.set()
        try:
            await answered.wait()
        finally:
            del self._waiting[ident]
        if not answer:
            raise BridgeError(self._ended or "the daemon ended", code="internal")
        return answer[0]

    async def _write(self) -> None:
        assert self._process.stdin is not None
        try:
            while True:
                while self._unsent:
                    await self._process.stdin.send(self._unsent.popleft())
                self._more_unsent = anyio.Event()
                await self._more_unsent.wait()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            with anyio.move_on_after(_NOTICED):
                await self._over.wait()
            if self._ended is None:
                self._end_with("the daemon closed its stdin while it was running, and was ended")
                self._terminate()

    async def _listen(self) -> None:
        with self._listening:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read)
                tasks.start_soon(self._write)
                tasks.start_soon(self._read_stderr)
        self._listened.set()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        framer = packets.PacketFramer()
        try:
            async for data in self._process.stdout:
                for body in framer.feed(data):
                    self._take(body)
        except (codec.JSONError, packets.PacketTooLarge) as error:
            self._end_with(f"the daemon wrote what is no packet, and was ended: {error}")
            self._terminate()
            return
        with anyio.move_on_after(_NOTICED):
            await self._process.wait()
        code = self._process.returncode
        if code is None:
            self._end_with("the daemon closed its stdout while it was running, and was ended")
            self._terminate()
        else:
            self._end_with(f"the daemon ended with exit code {code}; its stderr says why")

    def _terminate(self) -> None:
        # uvloop raises for one that has ended.
        with suppress(ProcessLookupError):
            self._process.terminate()

    def _end_with(self, words: str) -> None:
        """Nothing more comes: whoever waits is told."""
        self._ended = words
        self._over.set()
        for answered, _ in self._waiting.values():
            answered.set()
        for listener in list(self._listeners):
            listener.close()

    def _take(self, body: bytes) -> None:
        packet = codec.decode_as(body, dict[str, Any])
        if "event" in packet:
            for listener in self._listeners:
                listener.offer(packet)
            return
        ident = packet.get("id")
        waiting = self._waiting.get(ident) if isinstance(ident, int) else None
        if waiting is not None:
            waiting[1].append(packet)
            waiting[0].set()

    async def _read_stderr(self) -> None:
        if self._process.stderr is not None and self._on_stderr is not None:
            async for data in self._process.stderr:
                self._on_stderr(data)

    async def _end(self) -> None:
        assert self._process.stdin is not None
        with anyio.move_on_after(_ENDING):
            # If it is gone already, those whom it concerned were told.
            with suppress(BridgeError):
                await self.request("shutdown")
            await self._process.stdin.aclose()
            await self._process.wait()
        if self._process.returncode is None:
            self._terminate()
            with anyio.move_on_after(_TERMINATING):
                await self._process.wait()
        if self._process.returncode is None:
            # uvloop raises for one that has ended.
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        # Nobody reads or writes while the pipes are closed.
        self._listening.cancel()
        await self._listened.wait()
        await self._process.aclose()


class Session:
    """A session of the daemon. Made by `Bridge.session`."""

    def __init__(self, bridge: Bridge, name: str, opened: dict[str, Any]) -> None:
        self.name = name
        self.opened = opened
        """The result of `open`: session_id, agent, capabilities, modes, config_options, ..."""
        self._bridge = bridge
        self._events: list[Events] = []
        self._closed = False

    async def prompt(self, *contents: Message, **config: Any) -> Turn:
        """One turn; several contents are joined by a blank line. `config`: deadlines and the
        like for this turn. Raises TurnFailed."""
        return await self._bridge.prompt(self.name, {"user_contents": list(contents), **config})

    async def steer(self, message: Message, *, message_id: str | None = None) -> dict[str, Any]:
        """Brings a message into the running turn; the agent's receipt."""
        return await self.request("steer", message=message, message_id=message_id)

    async def send(
        self, message: Message, *, mode: str = "queue", message_id: str | None = None
    ) -> dict[str, Any]:
        """Has a message delivered after the running turn (queue) or into it (steer)."""
        return await self.request("send", message=message, mode=mode, message_id=message_id)

    async def cancel(self) -> None:
        """Cancels the running turn; returns when it has ended."""
        await self.request("cancel")

    async def answer_permission(self, event: Event, outcome: str | dict[str, str]) -> None:
        """Answers a `permission` event: "allow", "deny", "cancel" or {"option_id": ...}."""
        await self.request("permission", request_id=event["request_id"], outcome=outcome)

    def events(self) -> Events:
        """The events of this session from now on; the iteration ends when it is closed."""
        events = self._bridge.events(self.name)
        if self._closed:
            events.close()
        self._events.append(events)
        return events

    async def request(self, operation: str, **fields: Any) -> Any:
        """Any other operation on this session; raises BridgeError."""
        return await self._bridge.request(operation, session=self.name, **fields)

    async def close(self) -> dict[str, Any]:
        """Ends the session and its agent; the agent's close metadata. Idempotent."""
        if self._closed:
            return {}
        self._closed = True
        try:
            result = await self.request("close")
        except BridgeError:
            return {}
        finally:
            for events in self._events:
                events.close()
        return result["response_metadata"]
