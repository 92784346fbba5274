"""Where the parts of a JSON text stand: the members of an object, the elements of an array.

Rule: offsets into the text itself, so that it can be edited without being written anew. msgspec
skips values at memory speed and validates them; from its raw values the offsets follow by walking.
What msgspec refuses though it is JSON (lone surrogates as JavaScript sends them, nesting deeper
than its recursion) or cannot tell (duplicate keys) is scanned here, slowly and just as strictly.
"""

import contextlib
import re

import msgspec

from bridge.wire import codec

Text = bytes | bytearray
Raw = msgspec.Raw

DEPTH = 10_000
"""Nesting up to which a text counts as JSON."""

_SPACE = re.compile(rb"[ \t\n\r]*+")
_STRING = re.compile(rb'"(?:[^"\\\0-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_LEAF = re.compile(
    _STRING.pattern + rb"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null"
)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_REPLACEMENT = rb"\\ufffd"
_NUMBER_GOES_ON = frozenset(bytes([byte]) for byte in b"0123456789.eE+-")

raw_object = msgspec.json.Decoder(dict[str, Raw]).decode
"""An object's values, raw; of a key given twice the last one. Raises msgspec.DecodeError."""
raw_array = msgspec.json.Decoder(list[Raw]).decode
"""An array's elements, raw."""


class NotJSON(ValueError):
    """The text is not JSON (RFC 8259), or is nested deeper than DEPTH."""


class Member(msgspec.Struct, gc=False):
    """One member of an object: its key unescaped, where the key begins, its value's span."""

    key: str
    at: int
    start: int
    end: int


def is_utf8(text: Text) -> bool:
    """Whether the text is UTF-8, which msgspec does not look at in values it skips."""
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def without_surrogates(text: Text) -> Text:
    """The text as msgspec takes it, as long as it was: U+FFFD for surrogates, lone or not; the same
    object where there are none.
    """
    return _SURROGATE.sub(_REPLACEMENT, text) if _SURROGATE.search(text) else text


def values(text: Text) -> dict[str, Raw]:
    """The values of the object that is the text, as `raw_object`, of any JSON: for reading, since
    surrogates may have others in their place. Raises NotJSON.
    """
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        return raw_object(text)
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        return raw_object(without_surrogates(text))
    return {member.key: Raw(bytes(text[member.start : member.end])) for member in scan(text)}


def scan(text: Text) -> list[Member]:
    """The members of the object that is the text, slowly. Raises NotJSON."""
    start = skip_space(text, 0)
    if text[start : start + 1] != b"{":
        raise NotJSON("not an object")
    if not is_utf8(text):
        raise NotJSON("not UTF-8")
    found = members(text, start, {}, 1)
    end = skip_space(text, found[-1].end if found else start + 1) + 1
    if skip_space(text, end) != len(text):
        raise NotJSON("something behind the object")
    return found


def skip_space(text: Text, position: int) -> int:
    """The next position that holds no white space."""
    return _SPACE.match(text, position).end()  # pyright: ignore[reportOptionalMemberAccess]


def skip_value(text: Text, position: int, depth: int = 0) -> int:
    """The end of the value that begins here, validated. Raises NotJSON."""
    closers: list[int] = []
    while True:
        position = skip_space(text, position)
        opener = text[position : position + 1]
        if opener in (b"{", b"["):
            closers.append(125 if opener == b"{" else 93)
            if depth + len(closers) > DEPTH:
                raise NotJSON(f"nested deeper than {DEPTH}")
            position = skip_space(text, position + 1)
            if text[position : position + 1] != bytes(closers[-1:]):
                if closers[-1] == 125:
                    position = _skip_key(text, position)
                continue
            closers.pop()
            position += 1
        else:
            leaf = _LEAF.match(text, position)
            if leaf is None:
                raise NotJSON(f"no value at byte {position}")
            position = leaf.end()
        while closers:
            position = skip_space(text, position)
            mark = text[position] if position < len(text) else 0
            if mark == 44:
                position += 1
                if closers[-1] == 125:
                    position = _skip_key(text, skip_space(text, position))
                break
            if mark != closers.pop():
                raise NotJSON(f"a value does not end at byte {position}")
            position += 1
        else:
            return position


def _skip_key(text: Text, position: int) -> int:
    """From a key to behind its colon."""
    key = _STRING.match(text, position)
    if key is None:
        raise NotJSON(f"no key at byte {position}")
    position = skip_space(text, key.end())
    if text[position : position + 1] != b":":
        raise NotJSON(f"no colon at byte {position}")
    return position + 1


def members(text: Text, start: int, known: dict[str, Raw], depth: int = 0) -> list[Member]:
    """The members of the object that begins at `start`, duplicates included, in order.

    `known` are that object's values as `raw_object` gave them, or none: then everything is
    scanned. Raises NotJSON.
    """
    found: list[Member] = []
    position = skip_space(text, start + 1)
    if text[position : position + 1] == b"}":
        return found
    while True:
        at = position
        position = skip_space(text, _skip_key(text, at))
        key = _unescape(text, at)
        end = _end_of(text, position, known.get(key))
        if end is None:
            end = skip_value(text, position, depth)
        found.append(Member(key, at, position, end))
        position = skip_space(text, end)
        mark = text[position : position + 1]
        if mark == b"}":
            return found
        if mark != b",":
            raise NotJSON(f"an object does not go on at byte {position}")
        position = skip_space(text, position + 1)


def elements(
    text: Text, start: int, known: list[Raw] | None = None, depth: int = 0
) -> list[tuple[int, int]]:
    """The spans of the elements of the array that begins at `start`; `known` as for `members`."""
    found: list[tuple[int, int]] = []
    position = skip_space(text, start + 1)
    if text[position : position + 1] == b"]":
        return found
    while True:
        if known is None:
            end = skip_value(text, position, depth)
        else:
            end = position + len(known[len(found)])
        found.append((position, end))
        position = skip_space(text, end)
        mark = text[position : position + 1]
        if mark == b"]":
            return found
        if mark != b",":
            raise NotJSON(f"an array does not go on at byte {position}")
        position = skip_space(text, position + 1)


def _end_of(text: Text, position: int, value: Raw | None) -> int | None:
    """Where the value ends if it is this one; a key given twice has another one here."""
    if value is None or not text.startswith(value, position):
        return None
    end = position + len(value)
    return None if bytes(text[end : end + 1]) in _NUMBER_GOES_ON else end


def _unescape(text: Text, at: int) -> str:
    end = _STRING.match(text, at).end()  # pyright: ignore[reportOptionalMemberAccess]
    key = bytes(text[at:end])
    return codec.decode(key) if b"\\" in key else key[1:-1].decode()
