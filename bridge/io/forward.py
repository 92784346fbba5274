"""A forward proxy on the way to an upstream: which one, by the usual variables; how it is asked.

Rules: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY count, in lower case first; the loopback is
never behind one. An https upstream is reached by a tunnel (CONNECT), so that the proxy sees no
request; an http one by the whole URL as the request's target. What an error says names the proxy
without its password. Used by httppool and httpclient.
"""

import base64
import ipaddress
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from bridge.io.sockets import Socket, connect
from bridge.wire import http_head
from bridge.wire.http_head import BadHead, Headers

if TYPE_CHECKING:
    from bridge.io.httppool import Origin

_PORT = 80
_REFUSED = 407


class Forward(NamedTuple):
    """A proxy. `authorization`: the Proxy-Authorization that its URL's userinfo stands for;
    `problem`: why its URL is of no use, found out when it is needed.
    """

    host: str
    port: int
    authorization: bytes | None = None
    problem: str | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"the proxy http://{host}:{self.port}" if self.host else "the proxy"

    def request(self, origin: "Origin", target: bytes, headers: Headers) -> tuple[bytes, Headers]:
        """A request's target and headers as the proxy wants them."""
        if origin.scheme == "https":
            return target, headers
        # What was given as the Host is what the proxy shall go to.
        host = http_head.find(headers, b"host") or origin.authority.encode()
        return b"http://" + host + target, [*headers, *self._credentials()]

    def refuses(self, origin: "Origin", status: int) -> bool:
        """Whether a response is the proxy's own, for want of credentials."""
        return origin.scheme == "http" and status == _REFUSED

    async def connect(self, origin: "Origin") -> Socket:
        """A connection for that origin: to the proxy, for https on to the origin itself.

        Raises OSError.
        """
        if self.problem is not None:
            raise OSError(self.problem)
        sock = await connect(self.host, self.port)
        if origin.scheme == "http":
            return sock
        try:
            await self._tunnel(sock, origin)
        except BaseException:
            sock.close()
            raise
        return sock

    async def _tunnel(self, sock: Socket, origin: "Origin") -> None:
        host = f"[{origin.host}]" if ":" in origin.host else origin.host
        place = f"{host}:{origin.port}".encode("ascii" if host.isascii() else "idna")
        headers = [(b"Host", place), *self._credentials()]
        await sock.send(http_head.request_bytes("CONNECT", place, headers))
        data, end = b"", 0
        try:
            while not (end := http_head.find_end(data)):
                more = await sock.receive()
                if not more:
                    raise OSError("it closed the connection")
                data += more
            answer = http_head.parse_response(data[:end], "CONNECT")
        except BadHead as error:
            raise OSError(f"it sent a broken head: {error}") from None
        if not 200 <= answer.status < 300:
            raise OSError(f"it said {answer.status} {answer.reason.decode('latin-1')}".rstrip())
        if data[end:]:
            raise OSError("it sent bytes before the tunnel was used")

    def _credentials(self) -> Headers:
        return [] if self.authorization is None else [(b"Proxy-Authorization", self.authorization)]


def forward_for(origin: "Origin", environment: Mapping[str, str]) -> Forward | None:
    """The proxy for an origin, None where it is reached directly."""
    url = _named(f"{origin.scheme}_proxy", environment) or _named("all_proxy", environment)
    if not url or spared(origin, _named("no_proxy", environment)):
        return None
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname or "", parts.port or _PORT
    except ValueError:
        return Forward("", 0, problem=f"its URL ({origin.scheme.upper()}_PROXY) cannot be read")
    if parts.scheme != "http" or not host:
        words = f"its URL begins with {parts.scheme}://, and only http:// is spoken with proxies"
        return Forward(host, port, problem=words)
    authorization = None
    if parts.username is not None:
        user, secret = unquote_to_bytes(parts.username), unquote_to_bytes(parts.password or "")
        authorization = b"Basic " + base64.b64encode(b"%b:%b" % (user, secret))
    return Forward(host, port, authorization)


def _named(name: str, environment: Mapping[str, str]) -> str:
    """A variable's value, in lower case first. HTTP_PROXY does not count where a web server has set
    REQUEST_METHOD: it is a request's header there.
    """
    upper = name.upper()
    if name in environment or (upper == "HTTP_PROXY" and "REQUEST_METHOD" in environment):
        return environment.get(name, "").strip()
    return environment.get(upper, "").strip()


def spared(origin: "Origin", exceptions: str) -> bool:
    """Whether an origin is the loopback or among the exceptions (NO_PROXY): `*`, host names with
    all that is below them, addresses, networks; each with a port, if only that one is meant.
    """
    host = origin.host.lower().rstrip(".")
    address = _address(host)
    if host == "localhost" or host.endswith(".localhost"):
        return True
    if address is not None and address.is_loopback:
        return True
    return any(
        _covers(item, host, address, origin.port)
        for item in exceptions.lower().replace(",", " ").split()
    )


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _covers(item: str, host: str, address: _Address | None, port: int) -> bool:
    if item == "*":
        return True
    name, colon, given = item.rpartition(":")
    if colon and given.isdigit() and (":" not in name or name.endswith("]")):
        if int(given) != port:
            return False
        item = name
    item = item.strip("[]")
    if address is not None:
        try:
            return address in ipaddress.ip_network(item, strict=False)
        except ValueError:
            return False
    item = item.removeprefix("*").lstrip(".").rstrip(".")
    return bool(item) and (host == item or host.endswith(f".{item}"))


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
