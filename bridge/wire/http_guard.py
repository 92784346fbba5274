"""Who may talk to a loopback server: the Host header and an unguessable first path segment.

Rule: a web page can make a browser send requests to 127.0.0.1 (DNS rebinding), and every user of
the machine can connect to it; the first is stopped by Host (421), the second by the path (404).
Used by the model proxy and the MCP endpoint.
"""

import secrets
from functools import lru_cache

_LOCAL = (b"localhost", b"127.0.0.1", b"[::1]")


def new_segment() -> str:
    """An unguessable path segment (128 bits)."""
    return secrets.token_urlsafe(16)


@lru_cache(64)
def is_local(host: bytes | None) -> bool:
    """Whether a Host header names this machine's loopback, whatever the port (it may have been
    forwarded). A missing one, which HTTP/1.0 permits, is no web page's doing.
    """
    if host is None:
        return True
    host = host.lower()
    name, colon, port = host.rpartition(b":")
    if host.endswith(b"]") or not colon:
        name, port = host, b""
    return name in _LOCAL and (not port or port.isdigit())


def split(target: bytes) -> tuple[str, bytes]:
    """A request's target as its first path segment and what follows: `/`, `?` or nothing first."""
    path, mark, query = target.partition(b"?")
    _, _, rest = path.partition(b"/")
    segment, slash, rest = rest.partition(b"/")
    if not target.startswith(b"/"):
        return "", target
    return segment.decode("latin-1"), slash + rest + mark + query
