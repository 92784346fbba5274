"""Trace files read back: one event a line, whatever state the file is in.

Owns: the way from a line to an `Event`. Rules: a file that is still being written, or whose writer
was killed, is read up to its last whole line; a line that cannot be read is reported and skipped;
what is no trace from the beginning, or of a later format, is a UsageError. Also reads bare
transcripts, lines of {"t": seconds, "dir": "c2a" or "a2c", "msg": ...}.
Called by every command that looks at traces.
"""

import base64
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bridge import __version__
from bridge.errors import UsageError
from bridge.wire import codec
from protocol_schemas.trace import FORMAT, Direction, Head, Record

_POLL = 0.1
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh")
_CHUNK = 1 << 20
_NS = 1e-9
_LATEST = 1 << 62
"""Nanoseconds; no clock has been running for a hundred years."""


class Event(msgspec.Struct):
    """A record as the tools see it. `t`: seconds since the recording began; `line`: from 1."""

    line: int
    t: float
    ch: str
    dir: Direction | None = None
    session: str | None = None
    n: int | None = None
    kind: str | None = None
    data: dict[str, Any] = {}
    content: bytes | None = None
    """The recorded bytes, without the line's end."""
    is_json: bool = False
    """Whether `content` is a JSON text."""
    end: str = "\n"
    """How the line ended; empty if it did not."""


class Damage(msgspec.Struct):
    """A line that is no record. `torn`: the last one, cut off in the middle."""

    line: int
    reason: str
    torn: bool = False


Item = Event | Head | Damage


class Parser:
    """Lines in, items out; keeps the clock of the recording they belong to."""

    def __init__(self) -> None:
        self._line = 0
        self._start: int | None = None

    def parse(self, line: bytes) -> Item | None:
        """What a line says; None for a blank one."""
        self._line += 1
        if not line.strip():
            return None
        try:
            record = _decode_record(line)
        except (msgspec.DecodeError, RecursionError):
            return self._otherwise(line)
        return self._event(record)

    def _event(self, record: Record) -> Event | Damage:
        if abs(record.t) > _LATEST:
            return Damage(self._line, "not a record: its time is out of range")
        try:
            content, is_json = _content(record)
        except ValueError as error:
            return Damage(self._line, f"not a record: its b64 is no base64: {error}")
        start = self._start = record.t if self._start is None else self._start
        return Event(
            self._line,
            (record.t - start) * _NS,
            record.ch,
            record.dir,
            record.session,
            record.n,
            record.kind,
            record.data,
            content,
            is_json,
            "\n" if record.end is None else record.end,
        )

    def _otherwise(self, line: bytes) -> Item:
        try:
            value = codec.decode(line)
        except codec.JSONError as error:
            return Damage(self._line, f"not JSON: {error}")
        fields = codec.mapping(value) or {}
        try:
            if "trace" in fields:
                return self._head(_newer(fields) or codec.convert(fields, Head))
            if fields.get("dir") in ("c2a", "a2c", "eof"):
                return self._foreign(line, fields)
            # Lone surrogates, which the typed decoder refuses.
            raw = fields.pop("msg", None)
            record = codec.convert(fields, Record)
            if raw is not None:
                record.msg = codec.Raw(codec.encode(raw))
        except codec.JSONError as error:
            return Damage(self._line, f"not a record: {error}")
        return self._event(record)

    def _head(self, head: Head) -> Head:
        # A later recording in the same file; another boot has another clock.
        self._start = head.t
        return head

    def _foreign(self, line: bytes, fields: dict[str, Any]) -> Event:
        t = fields.get("t")
        seconds = float(t) if isinstance(t, int | float) and abs(t) < _LATEST * _NS else 0.0
        if fields["dir"] == "eof":
            return Event(self._line, seconds, "process", kind="eof")
        direction: Direction = "out" if fields["dir"] == "c2a" else "in"
        content = bytes(_decode_foreign(line).msg)
        return Event(self._line, seconds, "acp", direction, content=content, is_json=True)


def _newer(fields: dict[str, Any]) -> Head | None:
    """The head of a format that we do not know, whatever else it says."""
    version = fields["trace"]
    newer = isinstance(version, int) and version > FORMAT
    return Head(version, 0, "", "") if newer else None


class _Foreign(msgspec.Struct):
    msg: msgspec.Raw = msgspec.Raw(b"null")


_decode_record = msgspec.json.Decoder(Record).decode
_decode_foreign = msgspec.json.Decoder(_Foreign).decode


def _content(record: Record) -> tuple[bytes | None, bool]:
    if record.msg is not msgspec.UNSET:
        return bytes(record.msg), True
    if record.text is not None:
        return record.text.encode(errors="surrogatepass"), False
    if record.b64 is not None:
        return base64.b64decode(record.b64), False
    return None, False


def read(path: str) -> Iterator[Item]:
    """The items of a file; `-` is stdin. Raises UsageError if it cannot be opened, or is no
    trace."""
    return (item for item in _items(path, follow=False) if item is not None)


def follow(path: str) -> Iterator[Item | None]:
    """The items of a file as it grows, until the recording ends; None whenever there is no more
    for the moment. Raises UsageError as `read` does."""
    return _items(path, follow=True)


def _items(path: str, *, follow: bool) -> Iterator[Item | None]:
    begun = False
    if not path:
        raise UsageError("the trace's name is empty: give a file that --record has written")
    for item in _lines(path, follow=follow):
        if isinstance(item, Damage) and not begun:
            raise UsageError(
                f"{path} is no trace: line {item.line} is {item.reason}; "
                "traces are what --record FILE writes"
            )
        if isinstance(item, Head) and item.trace > FORMAT:
            raise UsageError(
                f"{path} is a trace of format {item.trace}; this acp-mcp-bridge ({__version__}) "
                f"reads format {FORMAT}: use a newer one"
            )
        begun = begun or item is not None
        yield item
    if not begun:
        raise UsageError(f"{path} is empty: nothing has been recorded in it")


def _lines(path: str, *, follow: bool) -> Iterator[Item | None]:
    parser = Parser()
    rest: list[bytes] = []
    for chunk in _chunks(path, follow=follow):
        if not chunk:
            yield None
            time.sleep(_POLL)
            continue
        *lines, last = chunk.split(b"\n")
        if lines and rest:
            lines[0] = b"".join([*rest, lines[0]])
            rest = []
        if last:
            rest.append(last)
        for line in lines:
            if (item := parser.parse(line)) is not None:
                yield item
                if follow and _is_last(item):
                    return
    if rest and (item := parser.parse(b"".join(rest))) is not None:
        yield _torn(item) if rest[0][:1] == b"{" else item


def _torn(item: Item) -> Item:
    if isinstance(item, Damage):
        return Damage(item.line, "cut off in the middle: the writer was stopped", torn=True)
    return item


def _is_last(item: Item) -> bool:
    return isinstance(item, Event) and (item.ch, item.kind) == ("trace", "end")


def _chunks(path: str, *, follow: bool) -> Iterator[bytes]:
    try:
        # Unbuffered: a growing file is read as far as it goes, again and again.
        with Path("/dev/stdin" if path == "-" else path).open("rb", buffering=0) as file:
            # What comes through a pipe ends when its writer does.
            grows = follow and stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            chunk = file.read(_CHUNK)
            if chunk.startswith(_PACKED):
                raise UsageError(
                    f"{path} is compressed: unpack it first, such as with gunzip or zstd -d"
                )
            while chunk or grows:
                yield chunk
                chunk = file.read(_CHUNK)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
