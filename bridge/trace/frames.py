"""What the recorder tells its scribe: frames, sans-IO.

Layout: payload length (u32), kind (u8), stream (u16), time (u64, monotonic ns), then the payload.
Written by `bridge.trace.recorder`, parsed by `bridge.trace.ledger`.
"""

import struct
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

_HEAD = struct.Struct("<IBHQ")
HEAD_SIZE = _HEAD.size


class Kind(IntEnum):
    """STREAM declares one (JSON). DATA: bytes that passed on it. ENDED: no more will.
    EVENT: u32 length of a JSON object, the object, and bytes that belong to it.
    SECRET: a JSON pair of name and value. BYE: the recording is complete.
    MANY: a MessagePack list of frames, each with its kind, stream, time and payload; an event in
    it has its members (`EVENT_MEMBERS`) behind them, and in the payload its bytes alone. Bytes in
    its data are still to be `shown`."""

    STREAM = 0
    DATA = 1
    ENDED = 2
    EVENT = 3
    SECRET = 4
    BYE = 5
    MANY = 6


EVENT_MEMBERS = ("ch", "dir", "session", "n", "kind", "data")


class Frame(NamedTuple):
    kind: int
    stream: int
    t: int
    payload: bytes


def shown(data: Mapping[str, Any]) -> dict[str, Any]:
    """An event's particulars, bytes in them as text: Latin-1, as it is in HTTP's heads."""
    return {name: _shown(value) for name, value in data.items()}


def _shown(value: Any) -> Any:
    match value:
        case bytes():
            return value.decode("latin-1")
        case [[bytes(), bytes()], *_]:
            # Headers, as bridge.wire.http_head has them.
            return [[name.decode("latin-1"), text.decode("latin-1")] for name, text in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        case _:
            return value


def head(kind: Kind, stream: int, t: int, size: int) -> bytes:
    """What goes before a payload of `size` bytes."""
    return _HEAD.pack(size, kind, stream, t)


class FrameParser:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._wanted = HEAD_SIZE

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that `data` completes, in order."""
        self._parts.append(data)
        self._size += len(data)
        if self._size < self._wanted:
            return
        buffer = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        at = 0
        while True:
            self._wanted = HEAD_SIZE
            if len(buffer) - at < HEAD_SIZE:
                break
            size, kind, stream, t = _HEAD.unpack_from(buffer, at)
            if len(buffer) - at < HEAD_SIZE + size:
                self._wanted = HEAD_SIZE + size
                break
            at += HEAD_SIZE
            yield Frame(kind, stream, t, buffer[at : at + size])
            at += size
        rest = buffer[at:]
        self._parts = [rest] if rest else []
        self._size = len(rest)
