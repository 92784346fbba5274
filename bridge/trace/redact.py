"""Secrets masked by value: every spelling of every value the recording was told of.

Owns: the values and the spellings under which they can stand in a trace (JSON escapes, percent
encoding, base64). Rule: what is known is masked wherever it stands; a mask names the secret, so
that one can still see which key went where. A value shorter than five characters is not masked: it
would be found everywhere. Pure; used by `bridge.trace.ledger`.
"""

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

SHORTEST = 5
_LINE_SHORTEST = 16
_BASE64_SHORTEST = 8
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


class Redactor:
    """The secrets of one recording. With `masking` off it learns nothing and changes nothing."""

    def __init__(self, *, masking: bool = True) -> None:
        self.masking = masking
        self._values: set[str] = set()
        self._masks: dict[bytes, bytes] = {}
        self._longest = 0

    def learn(self, name: str, value: str) -> None:
        """Masks `value` from now on, as `[secret NAME]`. The first name of a value counts."""
        if not self.masking or value in self._values:
            return
        self._values.add(value)
        mask = b"[secret %b]" % (_NOT_A_NAME.sub("_", name) or "unnamed").encode()
        for spelling in spellings(value):
            self._masks.setdefault(spelling, mask)
        # The longest first: one secret may contain another.
        self._masks = dict(sorted(self._masks.items(), key=lambda item: -len(item[0])))
        self._longest = max(map(len, self._masks), default=0)

    def finds(self, data: bytes) -> bool:
        """Whether a secret stands in `data`."""
        return any(spelling in data for spelling in self._masks)

    def mask(self, data: bytes) -> bytes:
        """`data` with every secret replaced."""
        for spelling, mask in self._masks.items():
            if spelling in data:
                data = data.replace(spelling, mask)
        return data

    def unsure(self, data: bytes) -> int:
        """How many bytes at the end of `data` may be the beginning of a secret that goes on."""
        longest = 0
        tail = data[-self._longest :] if self._longest else b""
        for spelling in self._masks:
            size = min(len(spelling) - 1, len(tail))
            while size > longest and not tail.endswith(spelling[:size]):
                size -= 1
            longest = max(longest, size)
        return longest


def spellings(value: str) -> set[bytes]:
    """The bytes as which a value can stand in what passes through the bridge."""
    if len(value) < SHORTEST:
        return set()
    # A key of many lines (PEM) can be met line by line.
    lines = [line for line in value.splitlines() if len(line) >= _LINE_SHORTEST]
    found: set[str] = set()
    for text in {value, *lines}:
        found |= {text, text.strip()}
        found.update(_json(text))
        found.update(_percent(text))
    data = {text.encode(errors="surrogateescape") for text in found if len(text) >= SHORTEST}
    raw = value.encode(errors="surrogateescape")
    if len(raw) >= _BASE64_SHORTEST:
        data |= {base64.b64encode(raw).rstrip(b"="), base64.urlsafe_b64encode(raw).rstrip(b"=")}
    return data


def _json(text: str) -> Iterator[str]:
    """Inside a JSON string, and inside JSON that is itself inside a JSON string."""
    for ascii_only in (True, False):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        for form in {once, once.replace("/", "\\/"), _upper_escapes(once)}:
            yield form
            yield json.dumps(form, ensure_ascii=ascii_only)[1:-1]


def _upper_escapes(text: str) -> str:
    return re.sub(r"\\u[0-9a-f]{4}", lambda match: "\\u" + match[0][2:].upper(), text)


def _percent(text: str) -> Iterator[str]:
    """In a URL's path, query or user information."""
    for form in {
        quote(text, safe="", errors="surrogateescape"),
        quote(text, errors="surrogateescape"),
        quote_plus(text, errors="surrogateescape"),
    }:
        yield form
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), form)
