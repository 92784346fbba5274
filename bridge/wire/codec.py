"""JSON, both ways: the one place that knows how values become bytes.

Owns: decoding with msgspec and, where that is stricter than JSON as agents write it (lone
surrogates, NaN), with the standard library; encoding for our own frames, in which U+2028, U+2029
and U+0085 are escaped because node's readline ends a line there.
Rule: what is only relayed stays `Raw` and keeps its bytes.
"""

import codecs
import json
import math
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
Raw = msgspec.Raw
BOM = codecs.BOM_UTF8

_encoder = msgspec.json.Encoder()
_decode_any = msgspec.json.Decoder().decode
_LINE_ENDS = (
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
    ("\x85".encode(), rb"\u0085"),
)


class JSONError(ValueError):
    """The bytes are not JSON, or not JSON of the asked shape; the text says what and where."""


def decode(data: bytes | bytearray | memoryview | Raw) -> Any:
    """The value of a JSON text; raises JSONError.

    Lone surrogates (`"\\ud83d"`), which JavaScript programs do send, survive as such in `str`.
    """
    try:
        return _decode_any(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_leniently(bytes(data))


def _decode_leniently(data: bytes) -> Any:
    try:
        return json.loads(data.removeprefix(BOM).decode())
    except (ValueError, RecursionError) as error:
        raise JSONError(str(error) or type(error).__name__) from None


def mapping(value: Any) -> dict[str, Any] | None:
    """The value if it is a JSON object, else None."""
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


def convert(value: Any, kind: type[T]) -> T:
    """A decoded value as a typed one; raises JSONError that names the place (`$.config.cwd`)."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise JSONError(str(error)) from None
    except UnicodeEncodeError as error:
        # A lone surrogate in a name, or in a string where something else belongs.
        raise JSONError(str(error)) from None


def decode_as(data: bytes | Raw, kind: type[T]) -> T:
    """`decode`, then `convert`: for messages too rare to need a decoder of their own."""
    return convert(decode(data), kind)


def encode(value: Any) -> bytes:
    """The JSON text of a value, as compact UTF-8 without a line end in it.

    `Raw` values are embedded as they stand; non-finite floats become null. Raises JSONError for
    what is nested too deep (it can have been decoded with fewer calls on the stack).
    """
    try:
        data = _encoder.encode(value)
    except (UnicodeEncodeError, OverflowError):
        data = _encode_leniently(value)
    except RecursionError as error:
        raise JSONError(str(error)) from None
    return escape_line_ends(data)


def _encode_leniently(value: Any) -> bytes:
    try:
        return json.dumps(plain(value), separators=(",", ":"), allow_nan=False).encode()
    except RecursionError as error:
        raise JSONError(str(error)) from None


def escape_line_ends(data: bytes) -> bytes:
    """Escapes the three characters; in valid JSON their bytes occur inside strings only."""
    if not data.isascii():
        for raw, escaped in _LINE_ENDS:
            if raw in data:
                data = data.replace(raw, escaped)
    if b"\n" in data or b"\r" in data:
        # Only an embedded Raw can hold them, between its tokens.
        data = data.replace(b"\r", b" ").replace(b"\n", b" ")
    return data


def plain(value: Any) -> Any:
    """The same value in builtin types, its Raw parts decoded, its non-finite floats null."""
    if isinstance(value, Raw):
        return plain(decode(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, msgspec.Struct):
        return plain(msgspec.to_builtins(value))
    return value
