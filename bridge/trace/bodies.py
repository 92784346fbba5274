"""The bodies of model exchanges, as far as they are written down; sans-IO.

Owns: what is held back of each body, its size so far and its decoder. Rules: a secret that is cut
by the border of two pieces is masked all the same, so the end of a piece that may begin one waits
for the next; gzip and deflate are written decoded, since a secret cannot be seen in them; what is
encoded otherwise is left out, unless secrets are kept; of each body so much is written and no more.
Used by `bridge.trace.ledger`.
"""

import zlib
from typing import Any

from bridge.trace.redact import Redactor

CEILING = 64 * 1024 * 1024
"""Bytes of one body that are written down (docs/trace-format.md)."""
KINDS = ("request_body", "response_body")
_HEADS = {"request": "request_body", "response": "response_body"}

Piece = tuple[bytes, dict[str, Any]]
"""Bytes to be written, and what is to be said of them."""


class _Body:
    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self.held = b""
        self.size = 0
        self.full = False
        self._inflate: Any = None

    def decoded(self, data: bytes) -> bytes | None:
        """The data without its encoding; None if that is not known here, or it is broken."""
        if self.encoding in ("", "identity"):
            return data
        if self.encoding not in ("gzip", "x-gzip", "deflate"):
            return None
        try:
            if self._inflate is None:
                # Both kinds of deflate are sent: with a zlib head and without.
                bare = self.encoding == "deflate" and data[:1] and data[0] & 0x0F != 8
                self._inflate = zlib.decompressobj(-15 if bare else 47)
            return self._inflate.decompress(data)
        except zlib.error:
            self.encoding = "broken"
            return None


class Bodies:
    """All that are under way, by exchange."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._bodies: dict[tuple[int | None, str], _Body] = {}

    def head(self, n: int | None, kind: str, headers: Any) -> None:
        """A request's or response's head: how the body is encoded."""
        if (body := _HEADS.get(kind)) is not None:
            self._bodies[n, body] = _Body(_encoding(headers))

    def piece(self, n: int | None, kind: str, data: bytes) -> Piece | None:
        """What is to be written for a piece of a body; None for nothing yet."""
        body = self._bodies.setdefault((n, kind), _Body(""))
        if body.full:
            return None
        said: dict[str, Any] = {}
        if self._redactor.masking:
            plain = body.decoded(data)
            if plain is None:
                return b"", {"omitted": len(data), "encoding": body.encoding}
            if body.encoding not in ("", "identity"):
                said = {"decoded": body.encoding}
            data = plain
        data = body.held + data
        if body.size + len(data) > CEILING:
            body.full, body.held = True, b""
            data = data[: CEILING - body.size]
            return data[: len(data) - self._redactor.unsure(data)], said | {"cut": CEILING}
        size = len(data) - self._redactor.unsure(data)
        body.held = data[size:]
        body.size += size
        return (data[:size], said) if size else None

    def end(self, n: int | None) -> list[tuple[str, bytes]]:
        """What was held back of an exchange's bodies, by their kind; they are forgotten."""
        rest: list[tuple[str, bytes]] = []
        for kind in KINDS:
            body = self._bodies.pop((n, kind), None)
            if body is not None and body.held:
                rest.append((kind, body.held))
        return rest

    def open(self) -> list[int | None]:
        """The exchanges that have not ended."""
        return list(dict.fromkeys(n for n, _ in self._bodies))


def _encoding(headers: Any) -> str:
    pairs: list[list[str]] = list(headers) if isinstance(headers, list) else []  # pyright: ignore[reportUnknownArgumentType]
    for name, value in pairs:
        if name.lower() == "content-encoding":
            return value.strip().lower()
    return ""
