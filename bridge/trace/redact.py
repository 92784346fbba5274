"""Secrets masked by value: every spelling of every value the recording was told of.

Owns: the values and the spellings under which they can stand in a trace (JSON escapes, percent
encoding, base64). Rule: what is known is masked wherever it stands; a mask names the secret, so
that one can still see which key went where. A value shorter than five characters is not masked: it
would be found everywhere. Pure; used by `bridge.trace.ledger`.
"""

import base64
import json
import re
from bisect import bisect_right
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
        """By spelling, the longest first: one secret may contain another."""
        self._sorted: list[bytes] = []
        self._needles: list[bytes] = []
        """The spellings that contain no other: one of them stands wherever any does."""
        self._first = re.compile(b"(?!)")
        """Finds where a spelling may begin, by two bytes or by the last one."""
        self._longest = 0

    def learn(self, name: str, value: str) -> None:
        """Masks `value` from now on, as `[secret NAME]`. The first name of a value counts."""
        if not self.masking or value in self._values:
            return
        self._values.add(value)
        mask = b"[secret %b]" % (_NOT_A_NAME.sub("_", name) or "unnamed").encode()
        for spelling in spellings(value):
            self._masks.setdefault(spelling, mask)
        if not self._masks:
            return
        self._masks = dict(sorted(self._masks.items(), key=lambda item: -len(item[0])))
        self._sorted = sorted(self._masks)
        self._needles = []
        for spelling in reversed(self._masks):
            if not self.finds(spelling):
                self._needles.append(spelling)
        begins = {spelling[:2] for spelling in self._sorted}
        last = b"[%b]" % b"".join(map(re.escape, sorted({begin[:1] for begin in begins})))
        self._first = re.compile(b"|".join((*map(re.escape, begins), last + rb"\Z")))
        self._longest = len(next(iter(self._masks)))

    def finds(self, data: bytes) -> bool:
        """Whether a secret stands in `data`."""
        return any(map(data.__contains__, self._needles))

    def mask(self, data: bytes) -> bytes:
        """`data` with every secret replaced; where two overlap, the first and longer one."""
        if not self.finds(data):
            return data
        return self._pattern(data).sub(lambda match: self._masks[match[0]], data)

    def unsure(self, data: bytes) -> int:
        """How many bytes at the end of `data` are to wait for what follows: they may begin a
        secret, or belong to one that stands there and must not be cut."""
        cut = len(data) - self._begun(data)
        if cut < len(data) and self.finds(data):
            for match in self._pattern(data).finditer(data):
                if match.start() < cut < match.end():
                    cut = match.start()
        return len(data) - cut

    def _pattern(self, data: bytes) -> re.Pattern[bytes]:
        """Finds the secrets of which some stand in `data`."""
        present = [re.escape(spelling) for spelling in self._masks if spelling in data]
        return re.compile(b"|".join(present))

    def _begun(self, data: bytes) -> int:
        """The length of the longest end of `data` with which a spelling begins that goes on."""
        if not self._longest:
            return 0
        start = max(0, len(data) - self._longest + 1)
        # Not finditer: what it finds does not overlap.
        while (found := self._first.search(data, start)) is not None:
            end = data[found.start() :]
            # The first of the spellings behind `end` is one that begins with it, if any is.
            at = bisect_right(self._sorted, end)
            if at < len(self._sorted) and self._sorted[at].startswith(end):
                return len(end)
            start = found.start() + 1
        return 0


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
    for text in set(_base64(value.encode(errors="surrogateescape"))):
        data |= {form.encode() for form in (text, *_json(text), *_percent(text))}
    return data


def _base64(raw: bytes) -> Iterator[str]:
    """Encoded by itself, and within a longer text (`user:KEY`): three bytes become four characters
    there, so that it looks in three ways, by how many bytes of a group stand before it. The
    characters at its ends that a neighbour has a part in are left out."""
    if len(raw) < _BASE64_SHORTEST:
        return
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(raw).rstrip(b"=").decode()
        for before in range(3):
            text = encode(bytes(before) + raw).decode()
            yield text[(before * 8 + 5) // 6 : (before + len(raw)) * 8 // 6]


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
