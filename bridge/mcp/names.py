"""Names: a server's tools as the caller sees them, and the way back.

Rule: dispatch is by table, never by splitting a name; two tools of one name are an error that
names the tool and both servers. Called by `bridge.mcp.view`.
"""

import hashlib
import re
from collections.abc import Iterable
from urllib.parse import quote

LONGEST = 64
_CARRIED = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_CARRIED = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST = 8
_NO_SEGMENT = frozenset(("", ".", ".."))


class DuplicateName(Exception):
    """Two servers (or one, twice) offer what would be the same full name."""

    def __init__(self, kind: str, name: str, first: str, second: str) -> None:
        super().__init__(
            f"{kind} {name!r} is offered by server {first!r} and by server {second!r}: "
            "rename one of the servers, or use each server's own URL"
        )
        self.name = name
        self.servers = (first, second)


def full_name(server: str, name: str) -> str:
    """`<server>_<name>`; the server `""` has its names bare."""
    return f"{server}_{name}" if server else name


def short_name(name: str) -> str:
    """The name if every model API can carry it, else one of at most 64 of `[A-Za-z0-9_-]`.

    It ends in a digest of the whole name, so that the same name is always shortened alike and two
    names practically never meet; the way back is the table's.
    """
    if _CARRIED.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    stem = _NOT_CARRIED.sub("_", name)[: LONGEST - _DIGEST - 1]
    return f"{stem}_{digest}"


def table(
    kind: str, offered: Iterable[tuple[str, str]], *, prefixed: bool, short: bool
) -> dict[str, tuple[str, str]]:
    """Advertised name -> (server, its own name), in the order given; raises DuplicateName.

    `offered`: (server, name) pairs; `kind`: the word for errors, `tool` or `prompt`.
    """
    found: dict[str, tuple[str, str]] = {}
    for server, name in offered:
        shown = full_name(server, name) if prefixed else name
        if short:
            shown = short_name(shown)
        other = found.setdefault(shown, (server, name))
        if other != (server, name):
            raise DuplicateName(kind, shown, other[0], server)
    return found


def _quoted(name: str) -> str:
    return quote(name, safe="", errors="surrogatepass")


def segments(servers: Iterable[str]) -> dict[str, str]:
    """Server -> the path segment of its URL: percent-encoded, `_` for the server `""`.

    `.` and `..` would be resolved away by clients even when encoded, so they get a `_` too.
    """
    names = list(servers)
    taken = {_quoted(name) for name in names if name not in _NO_SEGMENT}
    found: dict[str, str] = {}
    for name in names:
        segment = _quoted(name)
        if name in _NO_SEGMENT:
            segment = f"_{name}"
            while segment in taken:
                segment += "_"
            taken.add(segment)
        found[name] = segment
    return found
