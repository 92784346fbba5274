"""Content-Encoding, as far as a body has to be looked into: gzip, deflate, and br and zstd where
their libraries are installed.

Rule: what cannot be read is an EncodingError, and the body goes on as it is; what is read is never
held beyond the limit. Used by bridge.model.body (requests) and, for answers, by bridge.model.record
and bridge.mcp.origin.
"""

import importlib
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from bridge.wire.http_head import members

_CHUNK = 1 << 14


class EncodingError(ValueError):
    """A body in an encoding that is not known here, or not in the encoding it claims."""


class TooLong(EncodingError):
    """A body that is longer than the limit once it is decoded."""


class Decoder(Protocol):
    """Decodes a body as it comes."""

    def feed(self, data: bytes) -> bytes:
        """The next decoded bytes. Raises EncodingError."""
        ...

    @property
    def whole(self) -> bool:
        """Whether the encoded body has come to its end."""
        ...


class _Frames:
    """An encoding whose frames may follow each other, by a decompressor for each: gzip, zstd; or of
    one alone: deflate, br.
    """

    def __init__(self, start: Callable[[bytes], Any], error: type[Exception], many: bool) -> None:
        self._start, self._error, self._many = start, error, many
        self._frame: Any = None

    def feed(self, data: bytes) -> bytes:
        found: list[bytes] = []
        while data:
            if self.whole:
                if not self._many:
                    raise EncodingError("something behind the end")
                self._frame = None
            if self._frame is None:
                self._frame = self._start(data)
            try:
                found.append(self._frame.decompress(data))
            except self._error as error:
                raise EncodingError(str(error)) from None
            data = self._frame.unused_data
        return b"".join(found)

    @property
    def whole(self) -> bool:
        return self._frame is not None and self._frame.eof


class _Brotli:
    """A brotli decompressor with zlib's names."""

    def __init__(self, library: Any) -> None:
        self._stream = library.Decompressor()
        self.unused_data = b""

    def decompress(self, data: bytes) -> bytes:
        return self._stream.process(data)

    @property
    def eof(self) -> bool:
        return self._stream.is_finished()


def _gzip(_: bytes) -> Any:
    return zlib.decompressobj(zlib.MAX_WBITS | 16)


def _deflate(data: bytes) -> Any:
    """With or without zlib's own header: servers do either."""
    wrapped = data[0] & 0x0F == 8
    return zlib.decompressobj(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)


def decoder(encoding: bytes) -> Decoder:
    """A decoder for a Content-Encoding's value. Raises EncodingError for one not known here."""
    name = encoding.strip().lower()
    if name in (b"gzip", b"x-gzip"):
        return _Frames(_gzip, zlib.error, many=True)
    if name == b"deflate":
        return _Frames(_deflate, zlib.error, many=False)
    if name == b"br" and (library := _installed("brotli")) is not None:
        return _Frames(lambda _: _Brotli(library), library.error, many=False)
    if name == b"zstd" and (library := _installed("zstandard")) is not None:
        zstd = library.ZstdDecompressor()
        return _Frames(lambda _: zstd.decompressobj(), library.ZstdError, many=True)
    raise EncodingError(f"content encoding {name.decode('latin-1')!r} cannot be read here")


def decode(encoding: bytes, body: bytes | bytearray, limit: int) -> bytearray:
    """The whole body, decoded: from the last encoding of a list to the first. Raises EncodingError,
    TooLong.
    """
    found = body
    for name in reversed(members(encoding)):
        if name != b"identity":
            found = _decode(name, found, limit)
    return found if isinstance(found, bytearray) else bytearray(found)


def _decode(encoding: bytes, body: bytes | bytearray, limit: int) -> bytearray:
    stream = decoder(encoding)
    found = bytearray()
    for start in range(0, len(body), _CHUNK):
        # A little at a time: a bomb is seen before it has grown.
        found += stream.feed(bytes(body[start : start + _CHUNK]))
        if len(found) > limit:
            raise TooLong(f"the decoded body is over the limit of {limit} bytes")
    if not stream.whole:
        raise EncodingError("the encoded body is cut off")
    return found


def _installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
