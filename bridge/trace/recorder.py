"""The recorder: everything that passes, told to the scribe, which writes it down.

Owns: the scribe's life and the streams. Rules: whatever is recorded, the caller is back in a
microsecond; nothing waits for the disk; whatever goes wrong ends the recording with one line in
the log, and nothing else. What passed is in the ring, and so safe from any end of the bridge,
within 20 ms: who is called between two messages finds none of our code in the processor's caches,
and pays three times for it, so that little is done there and the rest for many at once.

Opened by a command before the loop runs (it forks); `bridge.app` hands its taps down.
"""

import os
import select
import signal
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import anyio
import msgspec

from bridge import __version__
from bridge.io.family import Family
from bridge.log import log
from bridge.trace import frames, scribe, secrets
from bridge.trace.frames import Kind
from bridge.trace.ledger import Framing, Ledger, Stream
from bridge.trace.redact import Redactor
from bridge.trace.ring import Ring
from bridge.trace.target import open_target
from bridge.wire import codec
from protocol_schemas.trace import FORMAT, Head

BACKLOG = 1 << 28
"""Bytes the scribe may be behind before the recording is given up."""
_CLOSING = 2.0
_GATHERED_SECONDS = 0.02
_GATHERED = 64
_LARGE = 1 << 14
"""Bytes that are passed on at once, and not copied before."""

Tap = Callable[[str, bytes], None]
"""Takes what passed: "in" or "out", and the bytes."""


_Item = tuple[Any, ...]
"""A frame: kind, stream, time, payload, and of an event its members."""
_encode = msgspec.msgpack.Encoder().encode
_clock = time.monotonic_ns
_DATA, _EVENT = Kind.DATA, Kind.EVENT


class Recorder:
    """One recording. `run` needs a task; everything else returns at once."""

    def __init__(self, path: str, ring: Ring, report: int, pid: int) -> None:
        self.path = path
        self.ended = False
        """Whether the recording is over, for whatever reason."""
        self._ring = ring.writer(self._broken)
        self._gathered: list[_Item] = []
        self._secrets: set[str] = set()
        self._work = anyio.Event()
        self._report = report
        self._pid = pid
        self._streams = 0
        self._agents: Counter[str] = Counter()

    @classmethod
    @contextmanager
    def open(
        cls,
        path: str,
        *,
        environment: Mapping[str, str],
        family: Family | None = None,
        keep_secrets: bool = False,
    ) -> "Generator[Recorder]":
        """Records to a file (appended to; mode 0600), or to a new one in a directory.

        To be entered before the loop and any thread runs. Raises UsageError.
        """
        path, file = open_target(path)
        redactor = Redactor(masking=not keep_secrets)
        for secret in (*secrets.of_environment(environment), *secrets.of_arguments(sys.argv)):
            redactor.learn(*secret)
        ring = Ring()
        report, their_report = os.pipe()
        first = redactor.mask(codec.encode(_head(keep_secrets=keep_secrets))) + b"\n"
        pid = os.fork()
        if pid == 0:
            scribe.serve(ring, their_report, file, Ledger(redactor), first)
        os.close(their_report)
        os.close(file)
        if family is not None:
            family.spare(pid)
        recorder = cls(path, ring, report, pid)
        try:
            yield recorder
        finally:
            recorder._close()

    def tap(
        self,
        channel: str,
        *,
        session: str | None = None,
        n: int | None = None,
        framing: Framing = "lines",
    ) -> Tap:
        """Records both directions of a channel, as it is told of them."""
        streams = {
            direction: self._declare(Stream(channel, direction, session, n, None, framing))
            for direction in ("in", "out")
        }
        gathered, begin, pass_on = self._gathered, self._begin, self._pass_on

        def tap(direction: str, data: bytes) -> None:
            if len(data) >= _LARGE:
                pass_on()
                self._post(_DATA, streams[direction], _clock(), data)
                return
            # As _gather: a call less on the way of every message.
            gathered.append((_DATA, streams[direction], _clock(), data))
            if len(gathered) == 1:
                begin()
            elif len(gathered) >= _GATHERED:
                pass_on()

        return tap

    def taps(self, channel: str, session: str) -> Tap:
        """The tap of a channel of one more agent (`acp`, `stderr`), numbered from 1."""
        self._agents[channel] += 1
        framing: Framing = "text" if channel == "stderr" else "lines"
        return self.tap(channel, session=session, n=self._agents[channel], framing=framing)

    def _declare(self, stream: Stream) -> int:
        self._streams += 1
        self._control(Kind.STREAM, self._streams, codec.encode(stream))
        return self._streams

    def record(
        self,
        channel: str,
        kind: str,
        data: Mapping[str, Any],
        *,
        session: str | None = None,
        n: int | None = None,
        direction: str | None = None,
        content: bytes | bytearray | memoryview = b"",
    ) -> None:
        """Records an event: its particulars, and bytes that belong to it."""
        self.event(channel, direction, session, n, kind, dict(data), content)

    def event(
        self,
        channel: str,
        direction: str | None,
        session: str | None,
        n: int | None,
        kind: str,
        data: Mapping[str, Any],
        content: bytes | bytearray | memoryview,
    ) -> None:
        """As `record`, of particulars that do not change any more: they are encoded later."""
        members = channel, direction, session, n, kind, data
        self._gather((_EVENT, 0, _clock(), bytes(content), *members))

    def secret(self, name: str, value: str) -> None:
        """Masks a value from here on."""
        if value not in self._secrets:
            self._secrets.add(value)
            self._control(Kind.SECRET, 0, codec.encode((name, value)))

    def _control(self, kind: Kind, stream: int, payload: bytes) -> None:
        self._gather((kind, stream, _clock(), payload))

    def _gather(self, item: _Item) -> None:
        gathered = self._gathered
        gathered.append(item)
        if len(item[3]) >= _LARGE or len(gathered) >= _GATHERED:
            self._pass_on()
        elif len(gathered) == 1:
            self._begin()

    def _begin(self) -> None:
        """There is something to be passed on, soon."""
        self._work.set()

    def _pass_on(self) -> None:
        """Puts what was gathered into the ring."""
        if not self._gathered:
            return
        try:
            many = _encode(self._gathered)
        except (ValueError, TypeError, OverflowError, RecursionError):
            many = _encode([*map(_plain, self._gathered)])
        self._gathered.clear()
        self._post(Kind.MANY, 0, _clock(), many)

    def _post(self, kind: Kind, stream: int, t: int, payload: bytes) -> None:
        if self.ended:
            return
        self._ring.post(frames.head(kind, stream, t, len(payload)), payload)
        if self._ring.queued > BACKLOG:
            self._end(f"the disk is {self._ring.queued >> 20} MiB behind")

    async def run(self) -> None:
        """Passes on what is gathered, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._ring.run)
            while True:
                await self._work.wait()
                await anyio.sleep(_GATHERED_SECONDS)
                self._work = anyio.Event()
                self._pass_on()

    # the end

    def _broken(self) -> None:
        self._end(self._heard(0.1) or "its writer is gone")

    def _end(self, words: str) -> None:
        if not self.ended:
            self.ended = True
            log.error("recording to %s has ended (%s); everything else goes on", self.path, words)

    def _heard(self, within: float) -> str | None:
        """What the scribe has to report, waiting for its end; None if that did not come."""
        deadline = time.monotonic() + within
        said = b""
        while select.select([self._report], [], [], max(0, deadline - time.monotonic()))[0]:
            data = os.read(self._report, 4096)
            if not data:
                return said.decode(errors="replace")
            said += data
        return None

    def _close(self) -> None:
        deadline = time.monotonic() + _CLOSING
        self._control(Kind.BYE, 0, b"")
        self._pass_on()
        self._ring.finish(0 if self.ended else _CLOSING)
        words = self._heard(0.1 if self.ended else max(0.0, deadline - time.monotonic()))
        with suppress(ProcessLookupError, ChildProcessError):
            if words is None:
                os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        if words != "":
            self._end(words or f"the disk did not take the last of it within {_CLOSING:.0f} s")
        self.ended = True
        os.close(self._report)


def _head(*, keep_secrets: bool) -> Head:
    return Head(
        trace=FORMAT,
        t=time.monotonic_ns(),
        wall=datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        program=f"acp-mcp-bridge {__version__}",
        command=sys.argv[1:],
        pid=os.getpid(),
        secrets="kept" if keep_secrets else "masked",
    )


def _plain(item: _Item) -> _Item:
    """An event with its members as JSON: they have what MessagePack cannot say."""
    kind, stream, t, payload, *members = item
    if not members:
        return item
    said = {k: v for k, v in zip(frames.EVENT_MEMBERS, members, strict=True) if v}
    if "data" in said:
        said["data"] = frames.shown(said["data"])
    try:
        fields = codec.encode(said)
    except (codec.JSONError, TypeError):
        import reprlib  # rarely needed

        fields = codec.encode(said | {"data": {"unwritable": reprlib.repr(said.get("data"))}})
    return kind, stream, t, b"%b%b%b" % (struct.pack("<I", len(fields)), fields, payload)
