"""Where an agent's request goes: an upstream URL, taken apart once, and requests put on it.

Rules (MODEL_PROXY): what follows the proxy's own prefix is joined to the upstream URL with exactly
one slash, nothing is resolved or decoded; both queries arrive; userinfo becomes `Authorization:
Basic` where the request has none; of the headers only Host, the hop-by-hop ones and the framing of
a changed body differ from what was sent. Pure; used by bridge.model.relay.
"""

import base64
import re
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes, urlsplit

from bridge.errors import UsageError
from bridge.io.httppool import Origin
from bridge.wire.http_head import HOP_BY_HOP, Headers, members

_HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[\w.~-]+)(?::\d*)?")
_BROKEN = "the model upstream is not a URL that can be used: its host or its port is broken"
_AS_IS = "%/:=&?~+!$,;'@()*[]|"
_HOP = HOP_BY_HOP - {b"transfer-encoding"}
_KEPT = frozenset((b"transfer-encoding", b"content-length", b"host", b"content-encoding"))
_UPGRADE = frozenset((b"connection", b"upgrade"))


class Upstream(NamedTuple):
    """An upstream URL. `host` is the Host header's value, as the URL has it; `path` has no slash at
    its end; `basic` the Authorization its userinfo stands for.
    """

    origin: Origin
    host: bytes
    path: bytes
    query: bytes
    basic: bytes | None

    @property
    def shown(self) -> str:
        """The URL without what may be secret: userinfo and query."""
        return f"{self.origin}{self.path.decode('latin-1')}"


def parse(url: str) -> Upstream:
    """The URL's parts. Raises UsageError, which does not repeat userinfo."""
    try:
        parts = urlsplit(url)
        port = parts.port
        host = parts.netloc.rpartition("@")[2].encode("idna")
    except ValueError:
        # Its words may hold a piece of a password with a slash in it.
        raise UsageError(_BROKEN) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError("the model upstream must be an http:// or https:// URL with a host")
    if port == 0 or _HOST.fullmatch(host) is None:
        raise UsageError(_BROKEN)
    basic = None
    if parts.username is not None:
        user, secret = unquote_to_bytes(parts.username), unquote_to_bytes(parts.password or "")
        basic = b"Basic " + base64.b64encode(b"%b:%b" % (user, secret))
    usual = 443 if parts.scheme == "https" else 80
    return Upstream(
        Origin(parts.scheme, parts.hostname, port or usual),
        host,
        quote(parts.path, safe=_AS_IS).encode().removesuffix(b"/"),
        quote(parts.query, safe=_AS_IS).encode(),
        basic,
    )


def join(upstream: Upstream, rest: bytes) -> bytes:
    """The request's target upstream; `rest` followed the prefix and begins with `/` or `?`, if it
    is not empty.
    """
    path, mark, query = rest.partition(b"?")
    path = upstream.path + b"/" + path.removeprefix(b"/") if path else upstream.path or b"/"
    if upstream.query:
        query = upstream.query + (b"&" + query if query else b"")
        mark = b"?"
    return path + mark + query


def request_headers(
    upstream: Upstream, headers: Headers, fields: dict[bytes, bytes], *, upgrade: bool = False
) -> Headers:
    """The headers for the upstream, the framing as sent. `upgrade`: those that ask for one stay."""
    dropped = _dropped(fields) - _UPGRADE if upgrade else _dropped(fields)
    found: Headers = []
    for pair in headers:
        lower = pair[0].lower()
        if lower == b"host":
            found.append((pair[0], upstream.host))
        elif lower not in dropped:
            found.append(pair)
    if upstream.basic is not None and b"authorization" not in fields:
        found.append((b"Authorization", upstream.basic))
    if b"host" not in fields:
        found.insert(0, (b"Host", upstream.host))
    return found


def response_headers(headers: Headers, fields: dict[bytes, bytes], *, framed: bool) -> Headers:
    """The headers for the agent; a chunked framing stays where the body is passed on framed."""
    dropped = _dropped(fields) if framed else _dropped(fields) | {b"transfer-encoding"}
    return [pair for pair in headers if pair[0].lower() not in dropped]


def is_end_to_end(fields: dict[bytes, bytes]) -> bool:
    """Whether a response's head can be passed on as it stands."""
    return _HOP.isdisjoint(fields)


def reframed(headers: Headers, size: int, *, plain: bool) -> Headers:
    """The headers for a body that has changed: its Content-Length in place of the old one (chunked
    stays chunked); without Content-Encoding if it has been made `plain`.
    """
    found: Headers = []
    for name, value in headers:
        lower = name.lower()
        if lower == b"content-length":
            value = b"%d" % size
        if not (plain and lower == b"content-encoding"):
            found.append((name, value))
    return found


def _dropped(fields: dict[bytes, bytes]) -> frozenset[bytes]:
    """The hop-by-hop fields, those that Connection names included, but the body's framing."""
    connection = fields.get(b"connection")
    return _HOP if connection is None else _HOP | (frozenset(members(connection)) - _KEPT)
