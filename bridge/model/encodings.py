"""Content-Encoding, as far as a body has to be looked into: gzip, deflate, and br and zstd where
their libraries are installed.

Rule: what cannot be read is an EncodingError, and the body goes on as it is; what is read is never
held beyond the limit. Used by bridge.model.body (requests) and bridge.model.record (answers).
"""

import importlib
import zlib
from collections.abc import Callable
from typing import Any, Protocol

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


class _Zlib:
    """gzip and deflate, the latter with or without zlib's own header: servers do either."""

    def __init__(self, gzip: bool) -> None:
        self._gzip = gzip
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16) if gzip else None

    def feed(self, data: bytes) -> bytes:
        if not data:
            return b""
        if self._inflate is None:
            wrapped = data[0] & 0x0F == 8
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
        try:
            found = self._inflate.decompress(data)
            while self._gzip and self._inflate.eof and self._inflate.unused_data:
                rest = self._inflate.unused_data
                self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
                found += self._inflate.decompress(rest)
        except zlib.error as error:
            raise EncodingError(str(error)) from None
        return found

    @property
    def whole(self) -> bool:
        return self._inflate is not None and self._inflate.eof


class _Library:
    """br and zstd by a library's streaming decompressor."""

    def __init__(
        self, feed: Callable[[bytes], bytes], finished: Callable[[], bool], error: type[Exception]
    ) -> None:
        self._feed = feed
        self._finished = finished
        self._error = error

    def feed(self, data: bytes) -> bytes:
        try:
            return self._feed(data) if data else b""
        except self._error as error:
            raise EncodingError(str(error)) from None

    @property
    def whole(self) -> bool:
        return self._finished()


def decoder(encoding: bytes) -> Decoder:
    """A decoder for a Content-Encoding's value. Raises EncodingError for one not known here."""
    name = encoding.strip().lower()
    if name in (b"gzip", b"x-gzip"):
        return _Zlib(True)
    if name == b"deflate":
        return _Zlib(False)
    if name == b"br" and (library := _installed("brotli")) is not None:
        brotli = library.Decompressor()
        return _Library(brotli.process, brotli.is_finished, library.error)
    if name == b"zstd" and (library := _installed("zstandard")) is not None:
        zstd = library.ZstdDecompressor().decompressobj()
        return _Library(zstd.decompress, lambda: zstd.eof, library.ZstdError)
    raise EncodingError(f"content encoding {name.decode('latin-1')!r} cannot be read here")


def decode(encoding: bytes, body: bytes | bytearray, limit: int) -> bytearray:
    """The whole body, decoded. Raises EncodingError, TooLong."""
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
