"""From what the recorder tells to the lines of the trace file; sans-IO.

Owns: the streams, what has come of the line that is not complete on each, and the redactor. Rules:
secrets that a message brings are learnt before its line is written; a line that was read is
written as it was, in the same order. The lines of one read are checked and written as a whole, a
few hundred nanoseconds each: docs/decisions/0010-scribe.md has the reasons.
Driven by `bridge.trace.scribe`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from bridge.trace import bodies, frames, secrets
from bridge.trace.bodies import Bodies
from bridge.trace.frames import EVENT_MEMBERS, FrameParser, Kind
from bridge.trace.redact import Redactor
from bridge.wire import codec
from bridge.wire.lines import LineFramer

Framing = Literal["lines", "packets", "pieces", "text"]
"""What a record is: a line; a whole payload; a payload as it came; a line of a log, or as much of
it as 64 KiB."""

_NO_CEILING = 1 << 62
_TEXT_CEILING = 1 << 16
_BY_CLIENT = (("acp", "out"), ("client", "in"), ("conductor", "in"))

_check = msgspec.json.Decoder(msgspec.Raw).decode
_many = msgspec.msgpack.Decoder(list[list[Any]]).decode
_values = msgspec.json.Decoder(msgspec.Raw).decode_lines


class Stream(msgspec.Struct):
    """What is recorded of one direction of one channel."""

    ch: str
    dir: str | None = None
    session: str | None = None
    n: int | None = None
    kind: str | None = None
    framing: Framing = "lines"


class _Open:
    """A stream in use."""

    def __init__(self, stream: Stream, labels: bytes) -> None:
        self.ch = stream.ch
        by_client = (stream.ch, stream.dir) in _BY_CLIENT
        self.markers = secrets.CLIENT_MARKERS if by_client else secrets.AGENT_MARKERS
        self.framing: Framing = stream.framing
        self.labels = labels
        """The record's members from `ch` on, each with a comma before it."""
        self.framer = LineFramer(_NO_CEILING)
        self.held = b""


class Ledger:
    """One recording. Feed it the recorder's bytes, take the file's."""

    def __init__(self, redactor: Redactor) -> None:
        self.complete = False
        """Whether the recorder has said goodbye."""
        self.last = 0
        """The time of the last frame."""
        self._redactor = redactor
        self._frames = FrameParser()
        self._streams: dict[int, _Open] = {}
        self._bodies = Bodies(redactor)
        self._out: list[bytes] = []

    def feed(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            if frame.kind == Kind.MANY:
                for kind, stream, t, payload, *members in _many(frame.payload):
                    self._frame(kind, stream, t, payload, members)
            else:
                self._frame(*frame, members=[])

    def _frame(self, kind: int, stream: int, t: int, payload: bytes, members: list[Any]) -> None:
        self.last = t
        if kind == Kind.DATA:
            self._data(self._streams[stream], t, payload)
        elif kind != Kind.EVENT:
            self._control(kind, stream, t, payload)
        elif members:
            said = zip(EVENT_MEMBERS, members, strict=True)
            fields = {name: value for name, value in said if value is not None}
            if particulars := fields.pop("data"):
                fields["data"] = frames.shown(particulars)
            self._event(t, fields, codec.encode(fields), payload)
        else:
            size = int.from_bytes(payload[:4], "little")
            text = payload[4 : 4 + size]
            self._event(t, _fields(text), text, payload[4 + size :])

    def take(self) -> list[bytes]:
        """What is to be appended to the file: whole lines, in pieces."""
        out, self._out = self._out, []
        return out

    def end(self) -> None:
        """Writes what is left of lines that will not be completed."""
        for stream in self._streams.values():
            self._rest(stream, self.last)
        for n in self._bodies.open():
            self._end_bodies(self.last, n)

    def _control(self, kind: int, stream: int, t: int, payload: bytes) -> None:
        if kind == Kind.STREAM:
            declared = codec.decode_as(payload, Stream)
            members = msgspec.to_builtins(declared)
            members = {
                name: members[name]
                for name in ("ch", "dir", "session", "n", "kind")
                if members[name] is not None
            }
            text = self._redactor.mask(codec.encode(members))
            self._streams[stream] = _Open(declared, b"," + text[1:-1])
        elif kind == Kind.ENDED:
            self._rest(self._streams.pop(stream), t)
        elif kind == Kind.SECRET:
            name, value = codec.decode_as(payload, tuple[str, str])
            for secret in secrets.of_value(name, value):
                self._redactor.learn(*secret)
        elif kind == Kind.BYE:
            self.complete = True

    # data

    def _data(self, stream: _Open, t: int, data: bytes) -> None:
        match stream.framing:
            case "lines":
                lines = list(stream.framer.feed(data))
                # The first line may have been begun by an earlier read.
                read = data, *lines[:1]
                if any(marker in part for marker in stream.markers for part in read):
                    for line in lines:
                        self._learn(secrets.of_acp(line))
                if lines and not self._together(stream, t, lines):
                    for line in lines:
                        self._line(stream, t, line)
            case "packets":
                if stream.ch == "host":
                    self._learn(secrets.of_host(data))
                if b"\n" in data or not self._together(stream, t, [data]):
                    self._one(stream.labels, t, data)
            case "pieces":
                data = stream.held + data
                size = len(data) - self._redactor.unsure(data)
                stream.held = data[size:]
                if size:
                    self._one(stream.labels, t, data[:size])
            case "text":
                self._text(stream, t, data)

    def _learn(self, found: Iterable[secrets.Secret]) -> None:
        if self._redactor.masking:
            for secret in found:
                self._redactor.learn(*secret)

    def _together(self, stream: _Open, t: int, lines: Sequence[bytes]) -> bool:
        """Writes lines that are JSON without secrets; False if not all are."""
        text = b"\n".join(lines)
        try:
            if not text.isascii():
                text.decode()
            values = _values(text)
        except (ValueError, RecursionError):
            return False
        # As long as their lines: no line holds two values, or none, or a space around one.
        if [*map(len, values)] != [*map(len, lines)] or self._redactor.finds(text):
            return False
        head = b'{"t":%d%b,"msg":' % (t, stream.labels)
        if len(lines) == 1:
            self._out += (head, text, b"}\n")
        else:
            self._out += (head, text.replace(b"\n", b"}\n" + head), b"}\n")
        return True

    def _line(self, stream: _Open, t: int, line: bytes) -> None:
        if line.endswith(b"\r"):
            self._one(stream.labels + b',"end":"\\r\\n"', t, line[:-1])
        else:
            self._one(stream.labels, t, line)

    def _one(self, labels: bytes, t: int, data: bytes) -> None:
        self._out += (b'{"t":%d%b,' % (t, labels), *content(self._redactor.mask(data)), b"}\n")

    def _text(self, stream: _Open, t: int, data: bytes) -> None:
        *lines, rest = (stream.held + data).split(b"\n")
        for line in lines:
            self._line(stream, t, line)
        while len(rest) > _TEXT_CEILING:
            size = _TEXT_CEILING - self._redactor.unsure(rest[:_TEXT_CEILING])
            self._one(stream.labels + b',"end":""', t, rest[: size or _TEXT_CEILING])
            rest = rest[size or _TEXT_CEILING :]
        stream.held = rest

    def _rest(self, stream: _Open, t: int) -> None:
        rest = stream.framer.end() or stream.held
        stream.held = b""
        if rest:
            if stream.framing == "lines":
                self._learn(secrets.of_acp(rest))
            end = b"" if stream.framing == "pieces" else b',"end":""'
            self._one(stream.labels + end, t, rest)

    # events

    def _event(self, t: int, fields: dict[str, Any], text: bytes, data: bytes) -> None:
        """`text`: the fields as they are to be written."""
        particulars: dict[str, Any] = fields.get("data") or {}
        n, kind = fields.get("n"), fields.get("kind", "")
        if "headers" in particulars:
            self._learn(secrets.of_event(particulars))
        if fields.get("ch") == "model":
            if kind in bodies.KINDS:
                piece = self._bodies.piece(n, kind, data)
                if piece is None:
                    return
                data, said = piece
                if said:
                    text = codec.encode(fields | {"data": said})
            elif kind == "end":
                self._end_bodies(t, n)
            else:
                self._bodies.head(n, kind, particulars.get("headers"))
        self._happened(t, text, data)

    def _happened(self, t: int, fields: bytes, data: bytes) -> None:
        masked = self._redactor.mask(fields)
        head = b'{"t":%d,' % t
        if masked != fields and not _is_json(masked):
            # A secret that is a word of our own (a field's name, say).
            self._out += (head, b'"ch":"bridge","kind":"event",', *content(masked), b"}\n")
        elif data:
            members = content(self._redactor.mask(data))
            self._out += (head, masked[1:-1], b",", *members, b"}\n")
        else:
            self._out += (head, masked[1:], b"\n")

    def _end_bodies(self, t: int, n: int | None) -> None:
        for kind, rest in self._bodies.end(n):
            fields = {"ch": "model", "n": n, "kind": kind}
            self._happened(t, codec.encode(fields), rest)


def _fields(text: bytes) -> dict[str, Any]:
    """What can be read of an event that came as JSON."""
    try:
        return codec.mapping(codec.decode(text)) or {}
    except codec.JSONError:
        return {}


def content(data: bytes) -> tuple[bytes, ...]:
    """The record's member that holds `data`: `msg`, `text` or `b64`."""
    if b"\n" not in data and data.strip() == data and _is_json(data):
        return b'"msg":', data
    try:
        return b'"text":', codec.encode(data.decode())
    except UnicodeDecodeError:
        import base64  # rarely needed

        return b'"b64":"', base64.b64encode(data), b'"'


def _is_json(data: bytes) -> bool:
    try:
        if not data.isascii():
            data.decode()
        _check(data)
    except (ValueError, RecursionError):
        return False
    return True
