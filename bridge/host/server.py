"""The host's pipes: requests in, responses and events out, in the framing the host speaks.

Owns: the reader and the writer of stdio, the ids in flight and the count of events. Rules: what a
host writes never ends the daemon, save a prefix over the ceiling; every frame goes out whole, in
the order it was sent. Reading never waits for the host to read, unless it has left a great deal
unread. Called by `bridge.app`; the session layer sends through it.
"""

import math
from collections.abc import Callable
from typing import Any, TypeGuard

from bridge.errors import BridgeError
from bridge.host import responses
from bridge.io.pipes import FdReader, FdWriter
from bridge.log import log
from bridge.wire import codec, packets
from bridge.wire.codec import Raw

HIGH_WATER = 1 << 20
"""Bytes unread by the host beyond which agents are held back."""
UNREAD_CEILING = 1 << 28
"""Bytes unread by the host beyond which its own requests wait, too."""
EVENTS = (
    "update",
    "permission",
    "elicitation",
    "mcp",
    "model",
    "stderr",
    "exit",
    "turn",
    "mode",
    "notice",
    "subagent",
)

_KINDS: dict[type[Any], str] = {list: "array", str: "string", bool: "boolean", type(None): "null"}
Id = str | int | float
Tap = Callable[[str, bytes], None]


class HostServer:
    """One host, for the life of the daemon."""

    def __init__(self, writer: FdWriter, *, tap: Tap | None = None) -> None:
        self._writer = writer
        self._tap = tap
        self._framer = packets.PacketFramer()
        self._in_flight: set[Id] = set()
        self._wanted: frozenset[str] = frozenset()
        self._sequence = 0

    # in

    async def run(self, reader: FdReader, on_request: Callable[[dict[str, Any]], None]) -> None:
        """Hands over each request, checked as far as all are alike: an object with an operation,
        and an id that is not in flight. Returns at EOF, and after a packet over the ceiling."""
        try:
            while data := await reader.receive():
                for body in self._framer.feed(data):
                    self._take(body, on_request)
                if self._writer.queued > UNREAD_CEILING:
                    await self._writer.drained()
            if last := self._framer.end():
                self._take(last, on_request)
        except packets.PacketTooLarge as error:
            self.refuse(None, BridgeError(str(error), code="invalid_request", origin="host"))

    def _take(self, body: bytes, on_request: Callable[[dict[str, Any]], None]) -> None:
        if self._tap is not None:
            self._tap("in", body)
        ident: Any = None
        try:
            request = self._parse(body)
            ident = request.get("id")
            self._check(request, ident)
        except BridgeError as error:
            self.refuse(ident if _is_id(ident) else None, error)
            return
        on_request(request)

    def _parse(self, body: bytes) -> dict[str, Any]:
        try:
            value = codec.decode(body)
        except codec.JSONError as error:
            raise _invalid(f"the packet is not JSON: {error}") from None
        request = codec.mapping(value)
        if request is None:
            raise _invalid(f"the packet is a JSON {_kind(value)}, not an object")
        return request

    def _check(self, request: dict[str, Any], ident: Any) -> None:
        if not isinstance(request.get("operation"), str):
            raise _invalid('the request has no "operation" (a string)')
        if ident is None:
            return
        if not _is_id(ident):
            raise _invalid('"id" is neither a string nor a number')
        if ident in self._in_flight:
            raise _invalid(f"id {ident!r} is in flight already")
        self._in_flight.add(ident)

    # out

    def send(self, value: dict[str, Any]) -> None:
        """Sends a response; its id is free again. One over the ceiling is cut (`limit`)."""
        ident = value.get("id")
        if ident is not None:
            self._in_flight.discard(ident)
        try:
            body = codec.encode(value)
            size = len(body)
            words = f"the response has {size} bytes, a packet at most {packets.CEILING}: it was cut"
        except codec.JSONError as error:
            body, size, words = b"", math.inf, f"the response cannot be written: {error}"
        if size > packets.CEILING:
            body = codec.encode(responses.cut(value, words))
        self._post(body)

    def refuse(self, ident: Id | None, error: BridgeError) -> None:
        """Answers what could not be taken for a request; an id in flight stays in flight."""
        value = {"id": ident, "ok": False, "error": error.message, "code": error.code}
        self._post(codec.encode(value | {"origin": error.origin}))

    def _post(self, body: bytes) -> None:
        if self._tap is not None:
            self._tap("out", body)
        self._writer.post(*packets.frame(body, prefixed=bool(self._framer.prefixed)))

    # events

    def subscribe(self, names: list[str]) -> list[str]:
        """Sets which events the host gets; the known ones among `names`, in our order."""
        self._wanted = frozenset(names)
        return [name for name in EVENTS if name in self._wanted]

    def wants(self, name: str) -> bool:
        return name in self._wanted

    def event(self, name: str, session: str, turn: int | None, fields: dict[str, Any]) -> None:
        """Sends an event if the host asked for its kind. Raw values in `fields` stay raw."""
        if name not in self._wanted:
            return
        self._sequence += 1
        head = {"event": name, "session": session, "turn": turn, "seq": self._sequence}
        try:
            body = codec.encode(head | fields)
            size = len(body)
        except codec.JSONError as error:
            log.warning("%s event %d cannot be written: %s", name, self._sequence, error)
            body, size = codec.encode(head | responses.short(fields)), 0
        if size > packets.CEILING:
            log.warning("%s event %d has %d bytes, over the ceiling", name, self._sequence, size)
            body = codec.encode(head | responses.short(fields) | {"oversize": size})
        self._post(body)

    def update(
        self,
        session: str,
        turn: int | None,
        update: Raw,
        *,
        replay: bool,
        original: Raw | None = None,
    ) -> None:
        """The `update` event, with the update as the agent wrote it, or what stands for it and the
        `original` beside it."""
        fields = {"update": update, "replay": True} if replay else {"update": update}
        if original is not None:
            fields["original"] = original
        self.event("update", session, turn, fields)

    async def room(self) -> None:
        """Returns when the host has read enough for an agent to go on."""
        if self._writer.queued > HIGH_WATER:
            await self._writer.drained()


def _is_id(value: Any) -> TypeGuard[Id]:
    """A string or a number; NaN and infinities, which JSON has no way to give back, are neither."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int) and not isinstance(value, bool)


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "number")


def _invalid(message: str) -> BridgeError:
    return BridgeError(message, code="invalid_request", origin="host")
