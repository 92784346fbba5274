"""A strict host: one daemon process, every frame it wrote, and the faults that any frame can have.

Owns: the framing, and which requests are open. Rules: a frame that answers no open request, or one
that came already, is a fault; so is anything that is no frame. Made by `conformance.daemon.lab`.
"""

import json
from itertools import count
from typing import Any, TypeVar, cast

from conformance.check import expect
from conformance.judge import Fault, key, shown
from conformance.process import Child
from conformance.waiting import Waiting
from conformance.wire import Json, compact, mapping

T = TypeVar("T")
PREFIX = 8
CEILING = 128 << 20
RESULT_KEYS = {"reply", "stop_reason", "response_metadata", "update_metadata"}


def packet(body: bytes) -> bytes:
    return len(body).to_bytes(PREFIX, "big") + body


class Host(Waiting):
    """`generation`: `A` has no ids, `B` and `C` have; `framing`: `packets` or `lines`."""

    def __init__(
        self,
        child: Child,
        generation: str,
        framing: str,
        faults: list[Fault],
        traffic: list[str],
        timeout: float,
    ) -> None:
        super().__init__(child, timeout)
        self.frames: list[Json] = []
        self._generation, self._framing = generation, framing
        self._faults, self._traffic = faults, traffic
        self._ids = count(1)
        self._open: dict[tuple[str, object], int] = {}
        self._answers: dict[tuple[str, object], list[int]] = {}
        self._taken = 0

    @property
    def busy(self) -> bool:
        """Whether a request is unanswered, or the stream out of step."""
        return bool(self._open or self.spoiled)

    # What comes in

    async def run(self) -> None:
        """Reads until the daemon's stdout ends."""
        rest = b""
        async for data in self.child.stdout:
            rest = self._cut(rest + data)
            self._notice()
        if rest and not self.spoiled:
            self._spoil(rest)
        self.ended = True
        self._notice()

    def _cut(self, data: bytes) -> bytes:
        while data and not self.spoiled:
            if self._framing == "lines":
                body, end, rest = data.partition(b"\n")
                if not end:
                    return data
            else:
                size = int.from_bytes(data[:PREFIX], "big")
                if len(data) >= PREFIX and size > CEILING:
                    self._spoil(data)
                    return b""
                if len(data) < PREFIX + size or len(data) < PREFIX:
                    return data
                body, rest = data[PREFIX : PREFIX + size], data[PREFIX + size :]
            self._take(body)
            data = rest
        return data

    def _take(self, body: bytes) -> None:
        self._traffic.append(f"< {shown(body)}")
        try:
            value: Any = json.loads(body.decode())
        except ValueError:
            value = None
        if not isinstance(value, dict):
            self._spoil(body)
            return
        frame = mapping(cast("object", value))
        place = len(self.frames)
        self.frames.append(frame)
        if "event" in frame:
            return
        ident = key(frame.get("id"))
        self._answers.setdefault(ident, []).append(place)
        if self._generation == "A":
            return
        if self._open.pop(ident, None) is None and frame.get("id") is not None:
            self._fault("requests.once", f"no request {compact(frame.get('id'))} is open", body)
        if frame.get("ok") is not True:
            self._judge_error(frame, body)

    def _judge_error(self, frame: Json, body: bytes) -> None:
        if not isinstance(frame.get("error"), str) or not frame["error"].strip():
            self._fault("requests.errors", "error has no words", body)
        elif frame.get("ok") is not False:
            self._fault("requests.errors", "ok is neither true nor false", body)

    def _spoil(self, data: bytes) -> None:
        self.spoiled = f"stdout is out of step: {shown(data)}"
        self._fault("framing.pure", "on stdout is something that is no packet", data)

    def _fault(self, rule: str, words: str, data: bytes) -> None:
        self._faults.append(Fault(rule, words, shown(data)))

    # What goes out

    async def raw(self, data: bytes) -> None:
        packets = self._framing == "packets" and data[:1] == b"\0"
        self._traffic.append("> " + shown(data[PREFIX:] if packets else data))
        await self.child.write(data, self.timeout)

    def frame(self, value: object) -> bytes:
        """A value in the framing of this host."""
        body = compact(value).encode()
        return packet(body) if self._framing == "packets" else body + b"\n"

    def prepare(self, operation: str, ident: Any = None, **fields: Any) -> tuple[Any, bytes]:
        """A request and its bytes, not yet sent: for those who write it in their own way."""
        value: Json = {"operation": operation, **fields}
        if self._generation != "A":
            ident = next(self._ids) if ident is None else ident
            value = {"id": ident, **value}
            self._open[key(ident)] = len(self.frames)
        return ident, self.frame(value)

    async def send(self, operation: str, ident: Any = None, **fields: Any) -> Any:
        """Sends a request; its id (None in generation A)."""
        ident, data = self.prepare(operation, ident, **fields)
        await self.raw(data)
        return ident

    async def answer(self, ident: Any) -> Json:
        """The response to a request; in generation A the next one."""
        place = 0
        if self._generation == "A":
            place, self._taken = self._taken, self._taken + 1
        found = await self.wait(
            lambda: self._answers.get(key(ident), [])[place:], f"no response to request {ident}"
        )
        return self.frames[found[0]]

    def place(self, ident: Any) -> int:
        """Where among the frames a response that has come stands."""
        return self._answers[key(ident)][0]

    async def call(self, operation: str, **fields: Any) -> Json:
        """A request and its response."""
        return await self.answer(await self.send(operation, **fields))

    async def good(self, operation: str, **fields: Any) -> Json:
        """A request that must succeed; its response."""
        return ok(await self.call(operation, **fields))

    async def bad(self, operation: str, **fields: Any) -> Json:
        """A request that must fail; its response."""
        response = await self.call(operation, **fields)
        expect(response.get("ok") is False, f"it succeeded: {compact(response)[:200]}")
        return response

    def events(self, name: str, **fields: Any) -> list[Json]:
        """The events so far of that name and with those fields."""
        return [
            frame
            for frame in self.frames
            if frame.get("event") == name and all(frame.get(k) == v for k, v in fields.items())
        ]

    async def event(self, name: str, **fields: Any) -> Json:
        return (await self.wait(lambda: self.events(name, **fields), f"no event {name}"))[0]

    async def said(self, text: str, **fields: Any) -> Json:
        """The first update event whose text is that."""

        def found() -> list[Json]:
            return [
                event
                for event in self.events("update", **fields)
                if mapping(mapping(event.get("update")).get("content")).get("text") == text
            ]

        return (await self.wait(found, f"no update with the text {text!r}"))[0]


def ok(response: Json) -> Json:
    """The response, if it is a success."""
    expect(response.get("ok") is True, f"it failed: {compact(response)[:300]}")
    return response


def result(response: Json) -> Json:
    """A prompt's result: exactly its four keys."""
    found = mapping(response.get("result"))
    keys = set(found)
    expect(keys == RESULT_KEYS, f"the result's keys are {', '.join(sorted(keys)) or 'missing'}")
    return found
